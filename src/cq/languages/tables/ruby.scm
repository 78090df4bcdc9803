; Ruby. A bare `foo` may be a call or a variable: it is a reference.

(identifier) @ref
(constant) @ref
(instance_variable) @ref
(class_variable) @ref
(global_variable) @ref
(comment) @comment
(superclass) @span.type
; Marks where methods are static; the role says nothing about the names inside.
(singleton_class) @span.reference

(module name: (_) @name) @symbol.module
(class name: (_) @name) @symbol.class
(method name: (_) @name) @symbol.function
(singleton_method name: (_) @name) @symbol.function
(alias name: (_) @name) @symbol.function

(assignment left: (constant) @name right: (_) @value) @symbol.constant
(assignment left: (scope_resolution name: (constant) @name) right: (_) @value) @symbol.constant
(assignment left: (left_assignment_list (constant) @name)) @symbol.constant
(program (assignment left: [(identifier) (global_variable)] @name) @symbol.variable)
(class body: (body_statement (assignment left: [(class_variable) (instance_variable)] @name) @symbol.field))
(module body: (body_statement (assignment left: [(class_variable) (instance_variable)] @name) @symbol.field))

(call method: (_) @callee arguments: (_) @args) @call
(call method: (_) @callee !arguments) @call
(call !method arguments: (_) @args) @call
(super) @super
(body_statement (identifier) @visibility (#any-of? @visibility "private" "protected" "public" "module_function"))
