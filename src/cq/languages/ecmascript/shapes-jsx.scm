; Attributes of elements.

(jsx_attribute) @attribute
