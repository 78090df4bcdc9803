; Shell (bash grammar). A command is a call; control words are no commands in this grammar.

(variable_name) @ref
(command_name (word) @ref.call)
(comment) @comment

(function_definition name: (word) @name body: (_) @body) @symbol.function
(program (variable_assignment name: (variable_name) @name) @symbol.variable)
(declaration_command) @declaration

(command name: (command_name) @callee) @call
