package waitingroom

import (
	"context"
	"net"
	"net/http"
	"time"
)

const (
	// crowd is how many calls may wait as any other does: what they keep is little, all together.
	crowd = 1000
	// patience is how long a call is left to net/http all the same. One that is refused at once need not pay for more.
	patience = 500 * time.Millisecond
)

// Server is a server of net/http with a waiting room. Use its methods Serve, Shutdown and Close alone of those that begin or end it.
type Server struct {
	*http.Server
	room *room
	back *comeback
}

// New gives a server a waiting room, for those of its calls that may wait there. Each of them must be one that a handler answers
// at once, in one piece, when it has waited.
func New(server *http.Server, mayWait func(*http.Request) bool) *Server {
	back := newComeback()
	r := newRoom(server, mayWait, back.give)
	server.Handler = r
	return &Server{Server: server, room: r, back: back}
}

// Serve does what it does in net/http.
func (s *Server) Serve(l net.Listener) error {
	s.back.address(l.Addr())
	go func() { _ = s.Server.Serve(s.back) }() // it ends with the server
	return s.Server.Serve(l)
}

// Shutdown does what it does in net/http. It waits for the calls in the waiting room, too.
func (s *Server) Shutdown(ctx context.Context) error {
	s.room.end()
	if err := s.Server.Shutdown(ctx); err != nil { // it waits for handlers
		return err
	}
	return s.room.wait(ctx)
}

// Close does what it does in net/http. Calls in the waiting room are not answered.
func (s *Server) Close() error {
	s.room.cut()
	return s.Server.Close()
}
