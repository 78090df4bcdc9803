; CSS. Selectors are uses of classes and ids; custom properties and keyframes are definitions.

(comment) @comment
(class_selector (class_name) @ref)
(id_selector (id_name) @ref)
((plain_value) @ref (#match? @ref "^--"))
((declaration (property_name) @name) @symbol.variable (#match? @name "^--"))
(keyframes_statement (keyframes_name) @name (keyframe_block_list) @body) @symbol.key
(import_statement (string_value) @module) @import
(import_statement (call_expression (arguments (_) @module))) @import
