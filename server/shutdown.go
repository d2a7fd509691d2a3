package server

import "sync"

// shutdown is a request of a client to end the process.
type shutdown struct {
	once  sync.Once
	asked chan struct{} // closed by the first request
}

// Shutdown requests the end of the process (SHUTDOWN). It returns at once.
func (s *Server) Shutdown() { s.shutdown.once.Do(func() { close(s.shutdown.asked) }) }

// ShutdownAsked returns a channel that is closed when a client has requested the end of the process.
func (s *Server) ShutdownAsked() <-chan struct{} { return s.shutdown.asked }
