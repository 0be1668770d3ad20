"""The bundled agent: one storage node behind an HTTP API. An island that nothing else imports."""
