package request

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/labstack/echo/v4"

	"motorpool/httpapi/auth"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
	"motorpool/tracing"
)

// Pipeline is the steps of every request around its handler: Begin, AccessLog and RecoverPanic, in
// this order, and then Guard. All fields except Tracer are required.
type Pipeline struct {
	// Identify returns the identity of the caller, or an error that has an auth.Challenge.
	Identify   func(context.Context, *http.Request) (auth.Identity, error)
	Signatures *auth.Signatures
	Limits     *Limits
	Audit      *Audit
	Log        *slog.Logger
	Tracer     *tracing.Tracer // nil: none
	Now        func() time.Time
}

// Begin assigns the request id, the caller's if that is a UUID, and passes the call to next.
func (p *Pipeline) Begin(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		defer tracing.Step(context.Background(), delivery.StepHTTP).End() // the span comes below
		request := c.Request()
		id := requestID(request.Header)
		call := &Call{Context: c, clock: p.Now, ID: id, idText: id.String(), started: p.Now()}
		ctx, span := p.Tracer.Request(tracing.WithRequest(request.Context(), call.idText), request.Header, request.Method)
		defer span.End()
		call.context = ctx
		c.Response().Before(call.setHeaders)
		err := next(call)
		describeSpan(span, call)
		return err
	}
}

// describeSpan adds route, status and request id to the span of a request. The path may name a
// booking of a client, so the span has the route instead.
func describeSpan(span tracing.Span, c *Call) {
	if !span.IsRecording() {
		return
	}
	if route := c.Path(); route != "" {
		span.Rename(c.Request().Method + " " + route)
		span.Set(tracing.String("http.route", route))
	}
	span.Set(
		tracing.String("http.request.method", c.Request().Method), tracing.Int("http.response.status_code", c.Response().Status),
		tracing.String("motorpool."+tracing.RequestKey, c.idText),
	)
	if c.failure != nil && c.Response().Status >= http.StatusInternalServerError {
		span.Fail(string(c.failure.Code))
	}
}

// AccessLog logs each request after its answer, with the cause of its failure. Headers, query and
// bodies are not logged: they may contain secrets.
func (p *Pipeline) AccessLog(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if err := next(c); err != nil {
			p.fail(CallOf(c), err) // answers now, so that the status is logged
		}
		level, attrs := p.describeRequest(CallOf(c))
		p.Log.LogAttrs(CallOf(c).Ctx(), level, "request", attrs...)
		return nil
	}
}

func (p *Pipeline) describeRequest(c *Call) (slog.Level, []slog.Attr) {
	request, response := c.Request(), c.Response()
	attrs := []slog.Attr{
		slog.String("method", request.Method),
		slog.String("path", request.URL.Path),
		slog.Int("status", response.Status),
		slog.Duration("took", p.Now().Sub(c.started)),
		slog.Int64("bytes", response.Size),
		slog.String("request_id", c.idText),
	}
	attrs = append(attrs, remoteAttrs(c.RealIP(), request.RemoteAddr)...)
	if c.Actor.Subject != "" {
		attrs = append(attrs, slog.String("actor", c.Actor.Subject), slog.String("role", string(c.Actor.Role)))
	}
	if c.command != telematics.NoCommand {
		attrs = append(attrs, slog.String("command", c.command.String()))
	}
	level := slog.LevelInfo
	if f := c.failure; f != nil {
		attrs = append(attrs, slog.String("code", string(f.Code)))
		if f.Cause != nil {
			attrs = append(attrs, slog.Any("err", f.Cause))
		}
		if response.Status == http.StatusInternalServerError && request.Context().Err() == nil {
			level = slog.LevelError // unless the caller closed the connection
		}
	}
	if c.stack != nil {
		attrs = append(attrs, slog.String("stack", string(c.stack)))
	}
	return level, attrs
}

// remoteAttrs returns the address of the caller and, if that came from a trusted proxy, the
// proxy's.
func remoteAttrs(caller, connection string) []slog.Attr {
	if host, _, err := net.SplitHostPort(connection); err != nil || host == caller {
		return []slog.Attr{slog.String("remote", connection)}
	}
	return []slog.Attr{slog.String("remote", caller), slog.String("proxy", connection)}
}

// RecoverPanic converts a panic to an internal error; only the log gets the stack.
func (p *Pipeline) RecoverPanic(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) (err error) {
		defer func() {
			switch r := recover(); r {
			case nil:
			case http.ErrAbortHandler: // asks net/http to drop the connection
				panic(r)
			default:
				CallOf(c).stack = debug.Stack()
				err = telematics.Broken(fmt.Errorf("panic: %v", r))
			}
		}()
		return next(c)
	}
}
