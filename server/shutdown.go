package server

import "sync"

// shutdown is the wish of a client that the process end.
type shutdown struct {
	once  sync.Once
	asked chan struct{} // closed when a client has asked
}

// Shutdown asks whoever runs the process to stop the server. It returns at once.
func (s *Server) Shutdown() { s.shutdown.once.Do(func() { close(s.shutdown.asked) }) }

// ShutdownAsked gives a channel that is closed when a client has asked for the end (SHUTDOWN).
func (s *Server) ShutdownAsked() <-chan struct{} { return s.shutdown.asked }
