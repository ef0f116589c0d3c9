package waitingroom

import (
	"context"
	"errors"
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

// Server is a server of net/http with a waiting room. Of the methods that begin or end it, use Serve, Shutdown and Close. It knows no TLS.
type Server struct {
	*http.Server
	room *room
	back *comeback
}

// New gives a server a waiting room, in place of its handler, for those of its calls that may wait there. The handler of such a call gives its whole answer
// at the end: it has no use for Flush, other methods of a ResponseController, or a context that ends with the caller.
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
	_ = s.back.Close()
	return errors.Join(s.Server.Shutdown(ctx), s.room.wait(ctx))
}

// Close does what it does in net/http. Calls in the waiting room are not answered.
func (s *Server) Close() error {
	err := s.Server.Close()
	_ = s.back.Close()
	s.room.cut() // last: what was taken over meanwhile, too
	return err
}
