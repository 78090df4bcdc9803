; HTML, and the templates of Vue, Svelte and Astro. Scripts and styles are documents of their own.

(comment) @comment
(element (start_tag (attribute (attribute_name) @_id (quoted_attribute_value (attribute_value) @name))) (#eq? @_id "id")) @symbol.key
(element (start_tag (attribute (attribute_name) @_id (attribute_value) @name)) (#eq? @_id "id")) @symbol.key
(element (self_closing_tag (attribute (attribute_name) @_id (quoted_attribute_value (attribute_value) @name))) (#eq? @_id "id")) @symbol.key
(element (self_closing_tag (attribute (attribute_name) @_id (attribute_value) @name)) (#eq? @_id "id")) @symbol.key
