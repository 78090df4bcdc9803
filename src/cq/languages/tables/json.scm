; JSON, also with comments and one value per line.

(comment) @comment
(pair key: (string) @name value: (_) @value) @key
(document (object) @item.document)
(document (array (object) @item))
(document (object (pair key: (string) @name value: (_) @value) @setting))
