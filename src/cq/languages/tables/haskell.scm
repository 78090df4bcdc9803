; Haskell. Equations of one function are separate nodes; `finish` joins them.

[(variable) (constructor) (name)] @ref
[(comment) (haddock)] @comment

(signature name: (_) @name) @symbol.signature
(signature names: (binding_list name: (_) @name)) @symbol.signature
(function name: (_) @name) @symbol.function
(function (infix operator: (_) @name)) @symbol.function
(bind name: (_) @name) @symbol.function
(foreign_import signature: (signature name: (_) @name)) @symbol.signature
(data_type name: (_) @name) @symbol.type
(newtype name: (_) @name) @symbol.type
(type_synonym name: (_) @name) @symbol.type
(type_family name: (_) @name) @symbol.type
(data_family name: (_) @name) @symbol.type
(class name: (_) @name) @symbol.trait
(instance name: (_) @name) @symbol.impl
(data_constructor constructor: (_ name: (_) @name)) @symbol.enum_member
(newtype_constructor name: (_) @name) @symbol.enum_member
(field name: (field_name (_) @name)) @symbol.field

(header exports: (exports export: (export [(variable) (name)] @name))) @export
(import module: (module) @module) @import
(apply function: [(variable) (qualified)] @callee) @call
(infix left_operand: [(variable) (qualified)] @callee operator: (operator) @word (#any-of? @word "$" "$!" "<$>")) @call
