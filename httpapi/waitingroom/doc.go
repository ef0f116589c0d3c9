// Package waitingroom lets very many HTTP calls wait for long with little memory.
//
// net/http keeps 10 KB of buffers for each call until its handler returns, and a goroutine that reads ahead. Here a call of a crowd is
// served in a goroutine of its own. If that takes its time, the connection is taken over and net/http's handler returns. The
// goroutine writes the answer itself then, and has the connection served again as soon as its caller has more to say.
//
//	call ─► few wait? ──yes──► handler
//	          │ no
//	          ▼
//	        visit (goroutine) ──served soon──► answered through net/http
//	          │ not soon: connection taken over
//	          ▼
//	        answered by itself ─► at rest ──more to say──► net/http, as a connection that was just accepted
//
// While a call waits by itself nobody notices that its caller has hung up: its context does not end. That is for handlers
// that go on all the same.
package waitingroom
