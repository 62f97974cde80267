"""The pages, EPUB and PDF that the embedded engine makes, read as text; browsers are in test_pages.py."""

from __future__ import annotations

import errno
import io
import json
import os
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest
import render_book
from render_book import edit

from bookkit import files, render
from bookkit.book import load
from bookkit.errors import BookError
from bookkit.render import highlight, search, sources, stamp


def html_of(root: Path) -> list[Path]:
    return render.run(load(root), ["html"], "pandoc")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The book with all its formats rendered; for reading only."""
    root = render_book.write_book(tmp_path_factory.mktemp("read") / "book")
    render.run(load(root), ["html", "epub", "pdf"], "pandoc")
    return root


@pytest.fixture
def book(tmp_path: Path) -> Path:
    """The folder of a fresh book, nothing rendered."""
    return render_book.write_book(tmp_path / "book")


@pytest.fixture(scope="module")
def shapes(built: Path) -> str:
    return (built / "_book/chapters/01-shapes.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def words(built: Path) -> str:
    return (built / "_book/chapters/02-words.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def start(built: Path) -> str:
    return (built / "_book/index.html").read_text(encoding="utf-8")


def visible(html: str) -> str:
    """The page's words, tags taken out."""
    return " ".join(re.sub(r"<[^>]+>", " ", html).replace("\N{NO-BREAK SPACE}", " ").split())


class TestNumbersAndReferences:
    @pytest.mark.parametrize(
        "link",
        [
            '<a href="#fig-shapes-line" class="xref">Figure 1.1</a>, <a href="#fig-shapes-pair"',
            'Fig. <a href="#fig-shapes-line" class="xref">1.1</a>',
            '<a href="#tbl-shapes-corners" class="xref">Table 1.1</a>',
            '<a href="#eq-shapes-sum" class="xref">Equation 1.1</a>',
            '<a href="#lst-shapes-pseudo" class="xref">Listing 1.1</a>',
            '<a href="#sec-shapes-line" class="xref">Section 1.1</a>',
        ],
    )
    def test_a_reference_names_kind_and_number(self, shapes: str, link: str) -> None:
        assert link in shapes.replace("\N{NO-BREAK SPACE}", " ")

    @pytest.mark.parametrize(
        "link",
        [
            '<a href="01-shapes.html#sec-shapes" class="xref">Chapter 1</a>',
            '<a href="01-shapes.html#sec-shapes-line" class="xref">Section 1.1</a>',
            '<a href="01-shapes.html#fig-shapes-line" class="xref">Figure 1.1</a>',
            '<a href="01-shapes.html#tbl-shapes-made" class="xref">Table 1.2</a>',
            '<a href="01-shapes.html#eq-shapes-sum" class="xref">Equation 1.1</a>',
        ],
    )
    def test_a_reference_reaches_across_pages(self, words: str, link: str) -> None:
        assert link in words.replace("\N{NO-BREAK SPACE}", " ")

    def test_an_unnumbered_page_is_called_by_its_title(self, words: str) -> None:
        assert '<a href="../index.html#sec-preface" class="xref">Preface</a>' in words
        assert 'href="solutions/01-shapes.html#sec-sol-shapes" class="xref">Solutions: shapes</a>' in words

    def test_sections_figures_tables_listings_and_equations_are_numbered(self, shapes: str) -> None:
        said = visible(shapes)
        for expected in ("1 Shapes", "1.1 Lines", "1.1.1 Deeper", "Figure 1.2 : Which is longer?", "(1.1)"):
            assert expected in said
        assert "Table 1.2 : What was computed?" in said
        assert "Listing 1.1 : A loop" in said

    def test_solutions_and_the_preface_have_no_number(self, built: Path, start: str) -> None:
        solutions = (built / "_book/chapters/solutions/01-shapes.html").read_text(encoding="utf-8")
        assert "<h1>Solutions: shapes</h1>" in solutions.replace(' class="unnumbered"', "")
        assert "<h2>A line</h2>" in solutions
        assert ">Preface</h1>" in start

    def test_links_between_chapters_lead_to_pages(self, shapes: str, words: str) -> None:
        assert '<a href="solutions/01-shapes.html#sec-sol-shapes-line">solution</a>' in shapes
        assert '<a href="01-shapes.html">chapter before</a>' in words

    def test_every_local_link_of_every_page_leads_somewhere(self, built: Path) -> None:
        pages = {path: path.read_text(encoding="utf-8") for path in (built / "_book").rglob("*.html")}
        for path, html in pages.items():
            for target in re.findall(r'(?:href|src)="([^":]*)"', html):
                name, _, anchor = target.partition("#")
                there = (path.parent / name).resolve() if name else path
                assert there.is_file(), f"{path.name} links to {target}"
                assert not anchor or f'id="{anchor}"' in pages[there], f"{path.name} links to {target}"

    def test_a_citation_is_linked_to_the_pages_own_list(self, words: str) -> None:
        assert re.search(r'\(<a href="#ref-euler1748" role="doc-biblioref">Euler 1748, p\.\s3</a>\)', words)
        assert '<div id="ref-euler1748" class="csl-entry" role="listitem">' in words
        assert ">References</h2>" in words

    def test_a_page_that_cites_nothing_has_no_list(self, shapes: str) -> None:
        assert "References" not in shapes


class TestCellsAndOutputs:
    @pytest.mark.parametrize(
        "hidden", ["secret_setup", "never shown", "#| ", "print('only output')", "pair()"]
    )
    def test_what_the_options_hide_is_not_there(self, shapes: str, hidden: str) -> None:
        assert hidden not in shapes

    def test_output_without_its_code_is_shown(self, shapes: str) -> None:
        assert "only output" in shapes

    def test_a_cell_tagged_remove_cell_is_left_out(self) -> None:
        cells = ({"cell_type": "code", "source": "1", "outputs": [], "metadata": {"tags": ["remove-cell"]}},)
        assert sources.manuscript(_page(cells), "html").markdown.strip() == ""

    def test_tags_of_prose_hide_nothing(self) -> None:
        cells = ({"cell_type": "markdown", "source": "Here.", "metadata": {"tags": ["remove-cell"]}},)
        assert sources.manuscript(_page(cells), "html").markdown == "Here.\n"

    @pytest.mark.parametrize("link", ["![a](attachment:a.png)", '<img src="attachment:a b.png">'])
    def test_a_picture_pasted_into_a_notebook_is_refused(self, book: Path, link: str) -> None:
        edit(book, "chapters/02-words", "The end.", link)
        with pytest.raises(BookError, match=r"02-words\.md: cell 3: the picture attachment:a.* was pasted"):
            html_of(book)

    def test_quotes_in_code_are_not_spelled_out(self, book: Path) -> None:
        edit(book, "chapters/02-words", "The end.", '`it\'s` and `<a b="c">`: \'q\'\n\n~~~text\n"x"\n~~~')
        html_of(book)
        html = (book / "_book/chapters/02-words.html").read_text(encoding="utf-8")
        assert '<code>it\'s</code> and <code>&lt;a b="c"&gt;</code>' in html
        assert '<code>"x"</code>' in html

    def test_folded_code_is_a_details_element(self, shapes: str) -> None:
        assert re.search(
            r'<details class="fold"><summary>Code</summary>.*?unfold me.*?</details>', shapes, re.S
        )

    def test_printed_text_is_escaped_and_colour_codes_are_gone(self, shapes: str) -> None:
        assert '<pre class="text"><code>3 &lt;tag&gt; ```</code></pre>' in shapes
        assert '<div class="output stderr">\n<pre class="text"><code>careful</code></pre>' in shapes

    def test_html_is_shown_on_a_page_and_replaced_elsewhere(self, built: Path, shapes: str) -> None:
        assert '<div class="rich"><b>rich</b> <i>page</i></div>' in shapes
        text = _epub_text(built)
        assert "plain fallback" in text
        assert 'class="rich"' not in text
        assert re.search(r"<td[^>]*>v1</td>", text)

    def test_a_markdown_output_may_refer_to_a_figure(self, shapes: str) -> None:
        assert 'as in <a href="#fig-shapes-line" class="xref">' in shapes

    def test_a_figure_has_file_caption_alt_text_and_size(self, built: Path, shapes: str) -> None:
        assert '<img src="../figures/shapes-line.svg" width="192" height="96" alt="A &quot;line' in shapes
        assert "Where does it <em>end</em>?</figcaption>" in shapes
        assert (built / "_book/figures/shapes-line.svg").read_text(encoding="utf-8") == render_book.SVG

    def test_several_outputs_of_a_cell_are_parts_of_one_figure(self, shapes: str) -> None:
        figure = shapes[shapes.index('<figure id="fig-shapes-pair"') :].split("Which is longer?")[0]
        assert re.findall(r'alt="([^"]*)"', figure) == ["A line", "Another line"]
        assert re.findall(r"<figcaption>(one|two)</figcaption>", figure) == ["one", "two"]

    def test_callouts_are_notes_called_by_their_title(self, shapes: str) -> None:
        for kind, title in (("note", "In the interview"), ("warning", "Pitfall"), ("tip", "Try this")):
            assert f'<div class="callout callout-{kind}" role="note" aria-label="{title}">' in shapes
        assert "In the interview" not in _toc(shapes)

    def test_solutions_are_folded_and_their_questions_are_not(self, built: Path) -> None:
        html = (built / "_book/chapters/solutions/01-shapes.html").read_text(encoding="utf-8")
        before, _, after = html[html.index('id="sec-sol-shapes-line"') :].partition(
            '<details class="solution">'
        )
        assert "Where does a line end?" in before
        assert "nowhere" in after.split("</details>")[0]
        assert "It does not." in after.split("</details>")[0]
        assert html.count("<summary>Show the solution</summary>") == 2

    def test_content_for_one_format_is_in_no_other(self, built: Path, shapes: str) -> None:
        assert "only on a page" in shapes
        assert "only on a page" in _epub_text(built)  # EPUB is HTML too, as in Quarto


class TestAPage:
    def test_it_has_contents_by_parts_and_knows_its_place(self, words: str) -> None:
        assert "<summary>The parts</summary>" in words
        assert (
            '<a href="02-words.html" aria-current="page"><span class="number">2</span> <span>Words</span></a>'
        ) in words
        assert "<details><summary>Solutions</summary>" in words

    def test_it_has_its_own_contents_and_its_neighbours(self, words: str) -> None:
        assert '<a href="#sec-words-one">One</a>' in _toc(words)
        assert '<a class="prev" rel="prev" href="01-shapes.html">' in words
        assert '<a class="next" rel="next" href="solutions/01-shapes.html">' in words

    def test_its_notebook_can_be_taken_home(self, built: Path, words: str) -> None:
        assert '<a href="02-words.ipynb" download>' in words
        original = (built / "chapters/02-words.ipynb").read_bytes()
        assert (built / "_book/chapters/02-words.ipynb").read_bytes() == original

    def test_it_says_what_it_is(self, words: str, start: str) -> None:
        assert "<title>2 Words · A Book of Shapes</title>" in words
        assert '<html lang="en">' in words
        assert "<title>A Book of Shapes</title>" in start
        assert "Ada Example and Bo Example" in start

    def test_nothing_points_to_another_host(self, built: Path) -> None:
        for path in [*(built / "_book").rglob("*.html"), *(built / "_book/theme").iterdir()]:
            text = path.read_text(encoding="utf-8").replace("http://www.w3.org/", "")
            assert not re.search(r"https?://|[\"'(]//", re.sub(r"^\s*//.*", "", text, flags=re.M)), path.name

    def test_the_icon_is_in_the_page(self, start: str) -> None:
        assert '<link rel="icon" href="data:image/svg+xml,' in start

    def test_search_index_is_a_script_with_every_section(self, built: Path) -> None:
        script = (built / "_book/search-index.js").read_text(encoding="utf-8")
        pages = json.loads(script.removeprefix("bookSearch(").rstrip().removesuffix(");"))
        assert [page[0] for page in pages][:2] == ["index.html", "chapters/01-shapes.html"]
        assert ["sec-words-one", "2.1 One", "Search finds the word xylophone here."] in pages[2][2]


class TestWhole:
    def test_epub_holds_the_book(self, built: Path) -> None:
        text = _epub_text(built)
        assert "Figure\N{NO-BREAK SPACE}1.1" in text
        assert "<math" in text
        assert "unfold me" in text
        assert "It does not." in text
        assert "introductio in analysin infinitorum" in text.lower()
        assert "xref:" not in text
        assert "asset:" not in text
        assert "page:" not in text

    def test_epub_has_cover_title_and_a_fixed_identifier(self, built: Path) -> None:
        with zipfile.ZipFile(built / "_book/A-Book-of-Shapes.epub") as epub:
            package = epub.read("EPUB/content.opf").decode()
            names = epub.namelist()
        assert "A Book of Shapes" in package
        assert "Ada Example" in package
        assert "urn:uuid:" in package
        assert "<dc:language>en</dc:language>" in package
        assert any(name.endswith(".png") for name in names)
        assert sum(name.endswith(".svg") for name in names) == 4

    def test_every_page_of_the_epub_is_well_formed(self, built: Path) -> None:
        with zipfile.ZipFile(built / "_book/A-Book-of-Shapes.epub") as epub:
            for name in epub.namelist():
                if name.endswith((".xhtml", ".opf", ".ncx", ".svg")):
                    ElementTree.fromstring(epub.read(name))

    def test_rendering_names_the_pages_in_reading_order_and_the_documents(self, built: Path) -> None:
        paths = render.run(load(built), ["html", "epub", "pdf"], "pandoc")
        assert [path.name for path in paths] == [
            "index.html",
            "01-shapes.html",
            "02-words.html",
            "01-shapes.html",
            "A-Book-of-Shapes.epub",
            "A-Book-of-Shapes.pdf",
        ]

    def test_pdf_is_a_pdf_of_some_pages(self, built: Path) -> None:
        content = (built / "_book/A-Book-of-Shapes.pdf").read_bytes()
        assert content.startswith(b"%PDF-")
        assert len(re.findall(rb"/Type\s*/Page\b", content)) >= 5

    def test_rendering_twice_changes_no_byte(self, built: Path, tmp_path: Path) -> None:
        again = render_book.write_book(tmp_path / "elsewhere")
        render.run(load(again), ["html", "epub", "pdf"], "pandoc")
        assert _contents(again / "_book") == _contents(built / "_book")


def faults() -> Iterator[tuple[str, str, str, str]]:
    """Chapter, what stands in it, what is written instead, and what the error says."""
    yield "02-words", "@fig-shapes-line", "@fig-nowhere", "@fig-nowhere refers to nothing"
    yield (
        "02-words",
        "@euler1748",
        "@gauss1801",
        "@gauss1801 cites a source that the bibliography does not hold",
    )
    yield "02-words", "(01-shapes.md)", "(09-none.md)", "a link to chapters/09-none.md, which is no page"
    yield "01-shapes", "#sec-sol-shapes-line)", "#sec-sol-none)", "a link to #sec-sol-none"
    yield "01-shapes", '#| fig-alt: "A \\"line\\", rising."\n', "", "figure `fig-shapes-line` has no alt text"
    yield "01-shapes", '#| fig-cap: "Where does it *end*?"\n', "", "`fig-shapes-line` has no caption"
    yield (
        "01-shapes",
        ": How many corners? {#tbl-shapes-corners}",
        ": {#tbl-shapes-corners}",
        "has no caption",
    )
    yield "02-words", "{#sec-words-two}", "{#sec-shapes-line}", "the label `sec-shapes-line` is used twice"
    yield "02-words", "## Two", "# Two", "a second title, `# Two`"
    yield "02-words", "The end.", "![A view](view.svg)", "the picture chapters/view.svg does not exist"
    yield "02-words", "The end.", "![](../figures/hand.svg)", "a picture without alt text"
    yield "02-words", "The end.", "[up](#nowhere)", "a link to #nowhere, which this page does not have"
    yield "02-words", "The end.", "::: {.callout-note}\nopen", "Div"


class TestFaults:
    @pytest.mark.parametrize(("name", "old", "new", "message"), list(faults()))
    def test_what_leads_nowhere_is_an_error_with_its_place(
        self, book: Path, name: str, old: str, new: str, message: str
    ) -> None:
        edit(book, f"chapters/{name}", old, new)
        with pytest.raises(BookError, match=re.escape(message)) as caught:
            html_of(book)
        assert f"chapters/{name}.md:" in str(caught.value)
        assert not (book / "_book").exists()

    def test_the_line_is_the_one_that_holds_the_fault(self, book: Path) -> None:
        edit(book, "chapters/02-words", "The end.", "The end of @tbl-nowhere.")
        lines = (book / "chapters/02-words.md").read_text(encoding="utf-8").splitlines()
        with pytest.raises(BookError) as caught:
            html_of(book)
        assert caught.value.line == 1 + next(i for i, line in enumerate(lines) if "@tbl-nowhere" in line)

    def test_all_faults_are_told_at_once(self, book: Path) -> None:
        edit(book, "chapters/02-words", "The end.", "See @fig-a and @fig-b.")
        with pytest.raises(BookError) as caught:
            html_of(book)
        assert "@fig-a" in str(caught.value)
        assert "@fig-b" in str(caught.value)

    def test_a_near_miss_is_suggested(self, book: Path) -> None:
        edit(book, "chapters/02-words", "@fig-shapes-line", "@fig-shapes-lime")
        with pytest.raises(BookError, match="Did you mean @fig-shapes-line"):
            html_of(book)

    def test_a_chapter_without_notebook_says_what_to_run(self, book: Path) -> None:
        (book / "chapters/02-words.ipynb").unlink()
        with pytest.raises(BookError, match="has no notebook yet\nRun `bookkit execute 02-words`"):
            html_of(book)

    def test_a_page_that_is_not_utf8_is_named_with_its_line(self, book: Path) -> None:
        (book / "index.md").write_bytes(b"# Preface {.unnumbered}\n\nna\xefve\n")
        with pytest.raises(BookError, match=r"index\.md:3: is not UTF-8"):
            html_of(book)

    def test_a_notebook_that_is_no_json_is_named(self, book: Path) -> None:
        (book / "chapters/02-words.ipynb").write_text("{", encoding="utf-8")
        with pytest.raises(BookError, match=r"02-words\.ipynb: is not a notebook"):
            html_of(book)

    @pytest.mark.parametrize("folder", ["..", ".", "/tmp"])
    def test_an_output_folder_outside_the_book_is_refused(self, book: Path, folder: str) -> None:
        config = book / "_quarto.yml"
        config.write_text(config.read_text().replace("output-dir: _book", f'output-dir: "{folder}"'))
        with pytest.raises(BookError, match="is not a folder inside the book"):
            html_of(book)

    @pytest.mark.parametrize(("formats", "engine"), [(["docx"], "pandoc"), (["html"], "latex")])
    def test_unknown_formats_and_engines_are_refused(
        self, book: Path, formats: list[str], engine: str
    ) -> None:
        with pytest.raises(BookError, match=r"is called '(docx|latex)'\nThere are: "):
            render.run(load(book), formats, engine)


class TestFreshness:
    def test_a_rendered_book_is_fresh_and_an_unrendered_one_is_not(self, book: Path) -> None:
        assert not render.is_fresh(load(book))
        html_of(book)
        assert render.is_fresh(load(book))

    @pytest.mark.parametrize(
        "name", ["index.md", "references.bib", "_quarto.yml", "figures/hand.svg", "chapters/02-words.ipynb"]
    )
    def test_any_changed_input_makes_it_stale(self, book: Path, name: str) -> None:
        html_of(book)
        with (book / name).open("a", encoding="utf-8") as file:
            file.write("\n")
        assert not render.is_fresh(load(book))

    def test_a_touched_file_does_not(self, book: Path) -> None:
        html_of(book)
        os.utime(book / "index.md", (1, 1))
        assert render.is_fresh(load(book))

    @pytest.mark.parametrize("name", ["index.html", "chapters/02-words.html", "theme/book.css"])
    def test_a_page_that_is_gone_or_cut_makes_it_stale(self, book: Path, name: str) -> None:
        html_of(book)
        (book / "_book" / name).write_bytes(b"")
        assert not render.is_fresh(load(book))
        (book / "_book" / name).unlink()
        assert not render.is_fresh(load(book))

    @pytest.mark.parametrize(
        "content", ["", "{", "[]", '{"html": 1}', '{"html": {"inputs": "x"}}', '{"html": {"files": [1]}}']
    )
    def test_a_broken_stamp_only_means_rendering_again(self, book: Path, content: str) -> None:
        html_of(book)
        (book / "_book/.bookkit").write_text(content)
        assert not render.is_fresh(load(book))
        html_of(book)
        assert render.is_fresh(load(book))

    def test_asking_imports_nothing_heavy(self, book: Path) -> None:
        code = (
            "import sys; from pathlib import Path; from bookkit import book, render;"
            f"render.is_fresh(book.load(Path({str(book)!r})));"
            "heavy = ('pypandoc', 'typst', 'jupytext', 'nbformat', 'matplotlib');"
            "print([name for name in heavy if name in sys.modules])"
        )
        assert _python(code) == "[]"


class TestWriting:
    def test_one_format_leaves_the_others_alone(self, book: Path) -> None:
        render.run(load(book), ["html", "epub"], "pandoc")
        before = _contents(book / "_book")
        html_of(book)
        render.run(load(book), ["epub"], "pandoc")
        assert _contents(book / "_book") == before

    def test_a_page_that_left_the_book_is_removed_and_a_strangers_file_stays(self, book: Path) -> None:
        html_of(book)
        (book / "_book/mine.txt").write_text("keep me")
        config = book / "_quarto.yml"
        config.write_text(config.read_text().replace(", chapters/02-words.ipynb", ""))
        html_of(book)
        assert not (book / "_book/chapters/02-words.html").exists()
        assert (book / "_book/mine.txt").read_text() == "keep me"

    @pytest.mark.parametrize("step", [1, 2, 4])
    def test_a_page_that_left_the_book_is_removed_after_a_render_that_was_killed(
        self, book: Path, monkeypatch: pytest.MonkeyPatch, step: int
    ) -> None:
        html_of(book)
        config = book / "_quarto.yml"
        config.write_text(config.read_text().replace(", chapters/02-words.ipynb", ""))
        _fail_after(monkeypatch, step, KeyboardInterrupt())
        with pytest.raises(KeyboardInterrupt):
            html_of(book)
        monkeypatch.undo()
        html_of(book)
        assert not (book / "_book/chapters/02-words.html").exists()
        assert render.is_fresh(load(book))

    def test_a_stamp_that_names_files_outside_removes_none_of_them(self, book: Path) -> None:
        html_of(book)
        path = book / "_book/.bookkit"
        record = json.loads(path.read_text())
        record["html"]["files"] |= {"../index.md": 1, "/etc/hostname": 1}
        path.write_text(json.dumps(record))
        html_of(book)
        assert (book / "index.md").exists()

    def test_a_killed_render_leaves_whole_files_and_is_not_fresh(
        self, book: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        html_of(book)
        before = _contents(book / "_book")
        edit(book, "chapters/02-words", "The end.", "The very end.")
        edit(book, "chapters/01-shapes", "A circle.", "A circle!")
        _fail_after(monkeypatch, 2, KeyboardInterrupt())
        with pytest.raises(KeyboardInterrupt):
            html_of(book)
        monkeypatch.undo()
        now = _contents(book / "_book")
        assert not render.is_fresh(load(book))
        html_of(book)
        after = _contents(book / "_book")
        pages = [name for name in before if name != ".bookkit"]
        assert all(now[name] in (before[name], after[name]) for name in pages)
        assert before != after

    @pytest.mark.parametrize("code", [errno.ENOSPC, errno.EACCES, errno.EROFS])
    def test_a_full_disk_or_read_only_folder_is_a_clear_sentence(
        self, book: Path, monkeypatch: pytest.MonkeyPatch, code: int
    ) -> None:
        html_of(book)
        before = _contents(book / "_book")
        edit(book, "chapters/02-words", "The end.", "The very end.")
        _fail_after(monkeypatch, 1, OSError(code, os.strerror(code)))
        with pytest.raises(BookError, match=f"cannot be written: {os.strerror(code)}"):
            html_of(book)
        monkeypatch.undo()
        now = _contents(book / "_book")
        assert all(now[name] == before[name] for name in before if name != ".bookkit")

    def test_a_changed_sentence_costs_one_run_of_pandoc(
        self, book: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from bookkit.render import fragments

        html_of(book)
        edit(book, "chapters/02-words", "The end.", "The very end.")
        runs: list[str] = []
        original = fragments.run_pandoc

        def counted(arguments: list[str], content: str) -> tuple[str, str]:
            runs.append(content)
            return original(arguments, content)

        monkeypatch.setattr(fragments, "run_pandoc", counted)
        html_of(book)
        assert len(runs) == 1
        assert "The very end." in runs[0]


class TestSmallParts:
    def test_code_keeps_every_character_when_it_is_coloured(self) -> None:
        code = (
            'x = f"{a!r:>{w}}" if not b else \'\\\\\'  # <&> "\n@cached\n'
            'class A(B): """doc\n"""\n0x1f + 1_000.5e-3'
        )
        html = highlight.coloured(code, highlight.PYTHON)
        assert (
            re.sub(r"<[^>]+>", "", html).replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
            == code
        )
        assert "<c-fu>A</c-fu>" in html
        assert "<c-at>@cached</c-at>" in html
        assert "<c-dv>0x1f</c-dv>" in html

    def test_names_that_only_look_like_keywords_stay_plain(self) -> None:
        assert highlight.coloured("self.print, x.if_, format_map, Nonesuch", highlight.PYTHON) == (
            "self.print, x.if_, format_map, Nonesuch"
        )

    @pytest.mark.parametrize(
        ("svg", "size"),
        [
            ('<svg width="72pt" height="36pt">', (96, 48)),
            ('<svg viewBox="0 0 10 20.4" xmlns="x">', (10, 20)),
            ('<svg width="100%" viewBox="-5 -5 30 40">', (30, 40)),
            ("<svg>", None),
            ("no picture", None),
        ],
    )
    def test_a_pictures_size_comes_from_its_attributes_or_view_box(
        self, svg: str, size: tuple[int, int] | None
    ) -> None:
        assert sources.svg_size(svg) == size

    def test_an_opening_is_whole_sentences_when_they_fit(self) -> None:
        reading = search.read(
            "<p>One is short. Two is a little longer. Three would be too much.</p><p>No.</p>"
        )
        assert search.opening(reading, 45) == "One is short. Two is a little longer."
        assert search.opening(reading, 9) == "One is …"

    def test_text_that_holds_fences_stays_inside_its_block(self) -> None:
        cells = (
            {
                "cell_type": "code",
                "source": 's = "````"',
                "metadata": {},
                "outputs": [{"output_type": "stream", "name": "stdout", "text": "`````\n"}],
            },
        )
        markdown = sources.manuscript(_page(cells), "html").markdown
        assert "````` {.python .cell-code}" in markdown
        assert "`````` {.text}" in markdown

    def test_the_folder_of_pages_is_the_books_own(self, book: Path) -> None:
        assert stamp.output_folder(load(book)) == book.resolve() / "_book"


def _page(cells: tuple[dict[str, object], ...]) -> sources.Page:
    root = Path("/book")
    from bookkit.book import Chapter

    chapter = Chapter(
        root=root,
        path=root / "chapters/01-x.md",
        number="01",
        name="x",
        part="",
        module="x",
        header={},
        requires=(),
        data=(),
        numbers=(),
        timeout=60,
        is_solution=False,
        is_executed=True,
        package="p",
    )
    return sources.Page(chapter, "1", cells)


def _toc(html: str) -> str:
    return html[html.index('<nav id="toc"') :]


def _contents(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }


def _epub_text(root: Path) -> str:
    content = (root / "_book/A-Book-of-Shapes.epub").read_bytes()
    with zipfile.ZipFile(io.BytesIO(content)) as epub:
        return "".join(epub.read(name).decode() for name in epub.namelist() if "/text/" in name)


def _fail_after(monkeypatch: pytest.MonkeyPatch, count: int, error: BaseException) -> None:
    """From the `count`-th replaced file of the output folder on, replacing fails."""
    original = files._replace
    done: list[Path] = []

    def replace(path: Path, data: bytes) -> None:
        if "_book" in path.parts and path.name != ".bookkit":
            if len(done) + 1 >= count:
                raise error
            done.append(path)
        original(path, data)

    monkeypatch.setattr(files, "_replace", replace)


def _python(code: str) -> str:
    import subprocess
    import sys

    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.strip()
