; TOML. A table's header names its keys' parent.

(comment) @comment
(pair . [(bare_key) (quoted_key) (dotted_key)] @name (_) @value .) @key
(table . [(bare_key) (quoted_key) (dotted_key)] @name) @key
(table_array_element . [(bare_key) (quoted_key) (dotted_key)] @name) @key
