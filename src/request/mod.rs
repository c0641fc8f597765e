//! What a request asks of the API server.
