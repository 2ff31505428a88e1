"""MCP: JSON-RPC messages, the `mcp` package, and connections to other MCP servers."""
