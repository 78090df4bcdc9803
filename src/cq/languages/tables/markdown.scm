; Markdown, block structure.

(document) @document
(atx_heading) @heading
(setext_heading) @heading
; Headings inside lists and quotes are not those of the page; the role itself says nothing.
(list) @span.reference
(block_quote) @span.reference
