; Julia. A method is defined by `function f(x) … end` or by `f(x) = …`; a text that stands before a definition is its doc.

(identifier) @ref
(line_comment) @comment
(block_comment) @comment

(module_definition name: (identifier) @name) @symbol.namespace
(struct_definition (type_head) @name) @symbol.struct
(abstract_definition (type_head) @name) @symbol.type
(primitive_definition (type_head) @name) @symbol.type
(struct_definition (identifier) @name @symbol.field)
(struct_definition (typed_expression . (identifier) @name) @symbol.field)
(function_definition . (signature) @name) @symbol.function
(macro_definition . (signature) @name) @symbol.macro
(assignment . [(call_expression) (typed_expression . (call_expression)) (where_expression)] @name) @symbol.function
(const_statement (assignment . (identifier) @name)) @symbol.constant
(source_file (assignment . (identifier) @name) @symbol.variable)
(module_definition (assignment . (identifier) @name) @symbol.variable)
(macrocall_expression (macro_identifier (identifier) @word) (macro_argument_list . (identifier) @name)
  (#eq? @word "enum")) @symbol.enum

(_ (string_literal) @value
  . [(function_definition) (macro_definition) (assignment) (struct_definition) (abstract_definition)
     (module_definition) (const_statement)] @doc)

(using_statement) @import
(import_statement) @import
(export_statement (identifier) @name) @export

(call_expression . (_) @callee . (argument_list) @args) @call
(broadcast_call_expression . (_) @callee . (argument_list) @args) @call
(macrocall_expression (macro_identifier (identifier) @callee)) @call.macro
