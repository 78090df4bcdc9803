; YAML, block and flow style.

(comment) @comment
(block_mapping_pair key: (_) @name) @key
(flow_pair key: (_) @name) @key
(stream (document) @item.document)
(stream (document (block_node (block_sequence (block_sequence_item) @item))))
