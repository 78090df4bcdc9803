; Elements, in TSX and in JavaScript.

(jsx_opening_element) @jsx
(jsx_self_closing_element) @jsx
(jsx_closing_element name: (identifier)) @jsx.close
(jsx_attribute (property_identifier) @role.keyword)
