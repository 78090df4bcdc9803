; What shapes.py looks at, in both grammars.

(function_declaration) @callable
(generator_function_declaration) @callable
(function_expression) @callable
(generator_function) @callable
(arrow_function) @callable
(method_definition) @callable
(class_declaration) @type
(class) @type
(variable_declarator) @value

(binary_expression) @test
(if_statement condition: (_) @condition)
(while_statement condition: (_) @condition)
(do_statement condition: (_) @condition)
(for_statement condition: (_) @condition)
(ternary_expression condition: (_) @condition)
(expression_statement (call_expression) @statement)
(switch_statement) @switch
(if_statement) @if
(call_expression) @call
(new_expression) @call
(comment) @comment
