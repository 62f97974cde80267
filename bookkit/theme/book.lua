-- The book's one Pandoc filter: numbers, labels, cross references, callouts, folds.
--
-- Metadata in: `target` (html, epub or typst), `chapter` (its number, absent for an unnumbered page),
-- `dir` (the page's folder, "" or "chapters/"), `solutions` (present on a page of solutions).
-- Out: the first block of the document is one line of JSON, the page's *facts* (labels, headings, problems, …), and
-- links that need other pages' facts keep a scheme for Python to resolve: `xref:label`, `page:path`, `asset:path`.

local target, chapter, dir
local facts
local counters
local section = { 0, 0, 0, 0, 0, 0 }
local told = {} -- pictures whose missing alt text was told of

local KINDS = { fig = 'Figure', tbl = 'Table', eq = 'Equation', sec = 'Section', lst = 'Listing' }
local CALLOUTS = { note = true, warning = true, tip = true, important = true, caution = true }

local function kind_of(id)
  local prefix = id and id:match('^(%a+)%-')
  return prefix and KINDS[prefix] and prefix or nil
end

local function problem(message, needle)
  facts.problems:insert({ message = message, needle = needle })
end

local function html(text) return pandoc.RawBlock('html', text) end
local function typst(text) return pandoc.RawBlock('typst', text) end

-- One line, and nothing in it that could end a tag.
local function encode(value)
  return (pandoc.json.encode(value):gsub('[<>]', { ['<'] = '\\u003c', ['>'] = '\\u003e' }):gsub('\n', ' '))
end

local function label(id, kind, number, title)
  facts.labels:insert({ id = id, kind = kind, number = number or '', title = title })
end

-- The next number of a kind: "5.3" in chapter 5, "3" on an unnumbered page.
local function next_number(kind)
  counters[kind] = (counters[kind] or 0) + 1
  return (chapter and chapter .. '.' or '') .. counters[kind]
end

-- Captions ---------------------------------------------------------------------------------------------------------

local function captioned(kind, number, inlines)
  local name = pandoc.Span({ pandoc.Str(KINDS[kind]), pandoc.Str('\u{a0}'), pandoc.Str(number) }, { class = 'caption-label' })
  local out = pandoc.Inlines({ name })
  if #inlines > 0 then
    out:extend({ pandoc.Str(':'), pandoc.Space() })
    out:extend(inlines)
  end
  return { pandoc.Plain(out) }
end

local function number_figure(id, kind, content, inlines, class)
  local number = next_number(kind)
  label(id, kind, number, pandoc.utils.stringify(inlines))
  if #inlines == 0 then problem('`' .. id .. '` has no caption', id) end
  local figure = pandoc.Figure(content, { long = captioned(kind, number, inlines) }, { id = id, class = class })
  return figure
end

local function scrollable(block)
  if target ~= 'html' then return block end
  return pandoc.Div({ block }, { class = 'scroll' })
end

-- Where tables carry their captions themselves, the number joins the caption; on a page the table becomes a figure,
-- whose caption stays in place while a wide table scrolls.
local function captioned_table(tbl, id, caption)
  tbl.identifier = id
  if kind_of(id) == 'tbl' then
    local number = next_number('tbl')
    label(id, 'tbl', number, pandoc.utils.stringify(caption))
    caption = captioned('tbl', number, caption)[1].content
  end
  tbl.caption = { long = #caption > 0 and { pandoc.Plain(caption) } or {} }
  return tbl, false
end

local function table_block(tbl)
  local caption = pandoc.utils.blocks_to_inlines(tbl.caption.long)
  local id = tbl.identifier
  if kind_of(id) == 'tbl' and #caption == 0 then problem('`' .. id .. '` has no caption', id) end
  if target ~= 'html' then return captioned_table(tbl, id, caption) end
  tbl.identifier = ''
  tbl.caption = { long = {} }
  if kind_of(id) == 'tbl' then
    return number_figure(id, 'tbl', { scrollable(tbl) }, caption, 'table'), false
  end
  if #caption == 0 then return scrollable(tbl), false end
  return pandoc.Figure({ scrollable(tbl) }, { long = { pandoc.Plain(caption) } }, { id = id, class = 'table' }), false
end

-- Images -----------------------------------------------------------------------------------------------------------

local function image(img)
  local alt = img.attributes.alt or img.attributes['fig-alt']
  img.attributes['fig-alt'] = nil
  if kind_of(img.identifier) then problem('`' .. img.identifier .. '` has no caption', img.identifier) end
  if alt then img.attributes.alt = alt end
  if (alt or pandoc.utils.stringify(img.caption)) == '' and not told[img.src] then
    problem('a picture without alt text: ' .. img.src, img.src)
  end
  if not img.src:match('^%a[%w+.-]*:') then
    img.src = 'asset:' .. (img.src:sub(1, 1) == '/' and img.src:sub(2) or dir .. img.src)
  end
  if img.src:match('^asset:') then facts.assets:insert(img.src:sub(7)) end
  return img
end

-- Pandoc moves a figure's `alt` into the image's description, which otherwise repeats the caption.
local function figure_alt(content, id, caption)
  content:walk({
    Image = function(img)
      local described = pandoc.utils.stringify(img.caption)
      local alt = img.attributes.alt or img.attributes['fig-alt'] or (described ~= caption and described) or ''
      if alt == '' then
        problem('figure `' .. id .. '` has no alt text (`fig-alt`)', id)
        told[img.src] = true
      end
    end,
  })
end

local function figure(fig)
  local id = fig.identifier
  local caption = pandoc.utils.blocks_to_inlines(fig.caption.long)
  if not kind_of(id) then
    return fig
  end
  figure_alt(fig.content, id, pandoc.utils.stringify(caption))
  return number_figure(id, kind_of(id), fig.content, caption, 'figure')
end

-- A labelled div holds anything; its last paragraph is the caption, as in Quarto.
local function labelled_div(div, kind)
  local content, caption = div.content, pandoc.Inlines({})
  if #content > 1 and content[#content].t == 'Para' then
    caption = content[#content].content
    content:remove(#content)
  end
  if kind == 'fig' then figure_alt(content, div.identifier, nil) end
  local plain = content:walk({ Table = function(t) return scrollable(t) end })
  local class = kind == 'tbl' and 'table' or 'figure'
  if div.attributes.ncol then
    plain = { pandoc.Div(plain, { class = 'subfigures', ncol = div.attributes.ncol }) }
  end
  return number_figure(div.identifier, kind, plain, caption, class), false
end

-- Code -------------------------------------------------------------------------------------------------------------

-- Paper sets a code cell's source and output apart by functions of the template.
local function framed(name, content)
  local out = pandoc.Blocks({ typst('#' .. name .. '[') })
  out:extend(content)
  out:insert(typst(']'))
  return out
end

local function code_block(code)
  if target == 'typst' and code.classes:includes('cell-code') and kind_of(code.identifier) ~= 'lst' then
    code.classes = { code.classes[1] }
    return framed('source', { code }), false
  end
  local caption = code.attributes['lst-cap']
  if kind_of(code.identifier) ~= 'lst' then return nil end
  local id = code.identifier
  code.identifier = ''
  code.attributes['lst-cap'] = nil
  local inlines = caption and pandoc.utils.blocks_to_inlines(pandoc.read(caption, 'markdown').blocks) or pandoc.Inlines({})
  return number_figure(id, 'lst', { code }, inlines, 'listing'), false
end

local function details(class, summary, content)
  if target ~= 'html' then return content end
  local out = pandoc.Blocks({ html('<details class="' .. class .. '"><summary>' .. summary .. '</summary>') })
  out:extend(content)
  out:insert(html('</details>'))
  return out
end

local function escape(text)
  return (text:gsub('[&<>"]', { ['&'] = '&amp;', ['<'] = '&lt;', ['>'] = '&gt;', ['"'] = '&quot;' }))
end

-- HTML kept as text until here: a page takes it as it is, the other formats its tables.
local function html_output(div)
  local source = div.content[1].text
  if target == 'html' then return pandoc.Div({ html(source) }, { class = 'output scroll' }), false end
  return pandoc.read(source, 'html').blocks, false
end

-- Callouts ---------------------------------------------------------------------------------------------------------

local function callout_kind(div)
  for _, class in ipairs(div.classes) do
    local kind = class:match('^callout%-(%a+)$')
    if kind and CALLOUTS[kind] then return kind end
  end
end

local function callout_title(div, kind)
  local first = div.content[1]
  if first and first.t == 'Header' then
    div.content:remove(1)
    return first.content
  end
  local title = div.attributes.title or (kind:sub(1, 1):upper() .. kind:sub(2))
  return pandoc.Inlines({ pandoc.Str(title) })
end

local function callout(div, kind)
  local title = callout_title(div, kind)
  if target == 'typst' then
    local out = pandoc.Blocks({ typst('#callout("' .. kind .. '")['), pandoc.Plain(title), typst('][') })
    out:extend(div.content)
    out:insert(typst(']'))
    return out
  end
  if div.attributes.collapse == 'true' and target == 'html' then
    return details('callout callout-' .. kind, escape(pandoc.utils.stringify(title)), div.content)
  end
  local content = pandoc.Blocks({ pandoc.Div({ pandoc.Para(title) }, { class = 'callout-title' }) })
  content:extend(div.content)
  -- As a list: the order of a table's keys, and so of the attributes, would change from run to run.
  local spoken = { { 'role', 'note' }, { 'aria-label', pandoc.utils.stringify(title) } }
  return pandoc.Div(content, pandoc.Attr(div.identifier, { 'callout', 'callout-' .. kind }, spoken))
end

-- `::: {.content-visible when-format="html"}` and its three siblings, as in Quarto.
local function is_hidden(div)
  local names = { html = { html = true }, epub = { epub = true, html = true }, typst = { typst = true, pdf = true } }
  local wanted = div.attributes['when-format']
  local unwanted = div.attributes['unless-format']
  local met = not (wanted and not names[target][wanted]) and not (unwanted and names[target][unwanted])
  if div.classes:includes('content-visible') then return not met end
  return div.classes:includes('content-hidden') and met
end

local function early_div(div)
  if is_hidden(div) then return {} end
  local kind = callout_kind(div)
  if kind then return callout(div, kind) end
  if div.classes:includes('html-output') then return html_output(div) end
  if target == 'typst' and div.classes:includes('output') then return framed('printed', div.content) end
  if div.classes:includes('solution') then return details('solution', 'Show the solution', div.content) end
  if div.classes:includes('fold') then return details('fold', escape(div.attributes.summary or 'Code'), div.content) end
end

-- Headings ---------------------------------------------------------------------------------------------------------

local function section_number(level)
  section[level] = section[level] + 1
  for deeper = level + 1, 6 do section[deeper] = 0 end
  return chapter .. '.' .. table.concat(section, '.', 2, level)
end

local function heading_number(header)
  if not chapter or header.classes:includes('unnumbered') then return nil end
  if header.level == 1 then return chapter end
  return header.level <= 3 and section_number(header.level) or nil
end

local function heading(header)
  local title = pandoc.utils.stringify(header.content)
  local number = heading_number(header)
  if header.level == 1 then
    facts.titles:insert(title)
    facts.top = header.identifier
  end
  facts.headings:insert({ level = header.level, id = header.identifier, number = number or '', title = title })
  if kind_of(header.identifier) == 'sec' then
    label(header.identifier, header.level == 1 and number and 'chapter' or 'sec', number, title)
  end
  if number then
    header.content:insert(1, pandoc.Space())
    header.content:insert(1, pandoc.Span({ pandoc.Str(number) }, { class = 'number' }))
  end
  return header
end

-- Equations --------------------------------------------------------------------------------------------------------

local function equation(math, id)
  local number = id and next_number('eq')
  if id then label(id, 'eq', number, math.text) end
  if target == 'typst' and id then
    local body = pandoc.write(pandoc.Pandoc({ pandoc.Plain({ math }) }), 'typst'):gsub('%s+$', '')
    return pandoc.RawInline('typst', '#[#set math.equation(numbering: _ => [(' .. number .. ')])\n' .. body .. ' <' .. id .. '>]')
  end
  if target == 'typst' then return math end
  local content = pandoc.Inlines({ math })
  if id then content:insert(pandoc.Span({ pandoc.Str('(' .. number .. ')') }, { class = 'equation-number' })) end
  return pandoc.Span(content, { id = id or '', class = 'equation' })
end

local function equation_id(inlines, at)
  local space, text = inlines[at + 1], inlines[at + 2]
  if space and space.t == 'Str' then return space.text:match('^{#(eq%-[%w_-]+)}(.*)$') end
  if not (space and text and text.t == 'Str' and (space.t == 'Space' or space.t == 'SoftBreak')) then return nil end
  return text.text:match('^{#(eq%-[%w_-]+)}(.*)$')
end

local function number_equations(inlines)
  local out, at = pandoc.Inlines({}), 1
  while at <= #inlines do
    local item = inlines[at]
    if item.t == 'Math' and item.mathtype == 'DisplayMath' then
      local id, rest = equation_id(inlines, at)
      out:insert(equation(item, id))
      if id then
        at = at + (inlines[at + 1].t == 'Str' and 1 or 2)
        if rest ~= '' then out:insert(pandoc.Str(rest)) end
      end
    else
      out:insert(item)
    end
    at = at + 1
  end
  return out
end

-- Looking into every run of text takes longer than all the rest: only where there is an equation.
local function number_all_equations(blocks)
  local found = false
  blocks:walk({ Math = function(math) found = found or math.mathtype == 'DisplayMath' end })
  return found and blocks:walk({ Inlines = number_equations }) or blocks
end

-- References -------------------------------------------------------------------------------------------------------

local function xref(citation)
  facts.refs:insert(citation.id)
  local bare = citation.mode == 'SuppressAuthor' or #citation.prefix > 0
  local out = pandoc.Inlines(citation.prefix)
  if #out > 0 then out:insert(pandoc.Str('\u{a0}')) end
  out:insert(pandoc.Link({}, 'xref:' .. citation.id .. (bare and '?bare' or ''), '', { class = 'xref' }))
  out:extend(citation.suffix)
  return out
end

-- `@fig-x` is a cross reference, `@yao2023` a citation; a bracket may hold several of either.
local function cite(cited)
  local out, sources = pandoc.Inlines({}), pandoc.List({})
  for _, citation in ipairs(cited.citations) do
    if kind_of(citation.id) then
      if #out > 0 then out:extend({ pandoc.Str(','), pandoc.Space() }) end
      out:extend(xref(citation))
    else
      sources:insert(citation)
      facts.cites:insert(citation.id)
    end
  end
  if #out == 0 then return nil end
  if #sources > 0 then out:extend({ pandoc.Space(), pandoc.Cite(pandoc.Inlines({}), sources) }) end
  return out
end

local function link(el)
  local url = el.target
  if url:match('^%a[%w+.-]*:') or url:match('^//') then return nil end
  if url:match('^[^#?]+%.ipynb') or url:match('^[^#?]+%.q?md') then
    el.target = 'page:' .. dir .. url
    facts.links:insert(dir .. url)
    return el
  end
  if url:match('^#.') then facts.anchors:insert(url:sub(2)) end
end

-- Solutions: what follows a question stays folded until it is asked for ---------------------------------------------

-- The question is the quotation that may open the section.
local function fold_solutions(blocks)
  local out, folded = pandoc.Blocks({}), pandoc.Blocks({})
  local inside, asking = false, false
  local function close()
    if #folded > 0 then out:extend(details('solution', 'Show the solution', folded)) end
    folded = pandoc.Blocks({})
  end
  for _, block in ipairs(blocks) do
    if block.t == 'Header' and block.level <= 2 then
      close()
      inside = block.identifier:match('^sec%-sol%-') ~= nil and block.level == 2
      asking = inside
      out:insert(block)
    elseif not inside or (asking and block.t == 'BlockQuote') then
      out:insert(block)
    else
      asking = false
      folded:insert(block)
    end
  end
  close()
  return out
end

-- The page ---------------------------------------------------------------------------------------------------------

local function references_heading(doc)
  local last
  for _, block in ipairs(doc.blocks) do
    if block.t == 'Header' then last = pandoc.utils.stringify(block.content) end
  end
  if last == 'References' or last == 'Sources' then return nil end
  return pandoc.Header(2, 'References', { id = 'references-' .. (facts.top or 'page'), class = 'unnumbered' })
end

-- Only an HTML page has its own list of sources; the other formats have one at the end of the book.
local function cite_sources(doc)
  if #facts.cites == 0 or target ~= 'html' then return doc end
  local header = references_heading(doc)
  if header then doc.blocks:insert(heading(header)) end
  doc.blocks:insert(pandoc.Div({}, { id = 'refs' }))
  return pandoc.utils.citeproc(doc)
end

-- Of a page, Python reads them from the HTML, which is faster.
local function collect_ids(doc)
  if target == 'html' then return end
  local function keep(el)
    if el.identifier ~= '' then facts.ids:insert(el.identifier) end
  end
  doc.blocks:walk({ Header = keep, Div = keep, Span = keep, Figure = keep, CodeBlock = keep, Table = keep, Image = keep, Link = keep })
end

local number_blocks = {
  traverse = 'topdown',
  Header = heading,
  Table = table_block,
  Figure = figure,
  CodeBlock = code_block,
  Div = function(div)
    local kind = kind_of(div.identifier)
    if kind == 'fig' or kind == 'tbl' then return labelled_div(div, kind) end
  end,
}

function Pandoc(doc)
  local meta = doc.meta
  target = pandoc.utils.stringify(meta.target or 'html')
  chapter = meta.chapter and pandoc.utils.stringify(meta.chapter) or nil
  dir = meta.dir and pandoc.utils.stringify(meta.dir) or ''
  counters, facts = {}, {}
  for _, name in ipairs({ 'labels', 'headings', 'titles', 'problems', 'assets', 'refs', 'cites', 'links', 'anchors', 'ids' }) do
    facts[name] = pandoc.List({})
  end
  doc.blocks = doc.blocks:walk({ Div = early_div })
  doc.blocks = doc.blocks:walk({ traverse = 'topdown', Cite = cite })
  doc.blocks = doc.blocks:walk(number_blocks)
  doc.blocks = number_all_equations(doc.blocks:walk({ Image = image, Link = link }))
  if meta.solutions then doc.blocks = fold_solutions(doc.blocks) end
  doc = cite_sources(doc)
  collect_ids(doc)
  doc.blocks:insert(1, html(encode(facts)))
  return doc
end
