package httpapi

import (
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"motorpool/httpapi/auth"
	"motorpool/httpapi/contract"
	"motorpool/httpapi/request"
	"motorpool/telematics"
)

// router adds routes to Echo. Paths are written as in the contract.
type router struct {
	*server
	echo *echo.Echo
}

// post, put, patch and remove add a change. Its refusals are recorded under the activity.
func (r router) post(path, activity string, h request.Handler, options ...option) {
	r.change(http.MethodPost, path, activity, h, options...)
}

func (r router) put(path, activity string, h request.Handler, options ...option) {
	r.change(http.MethodPut, path, activity, h, options...)
}

func (r router) patch(path, activity string, h request.Handler, options ...option) {
	r.change(http.MethodPatch, path, activity, h, options...)
}

func (r router) remove(path, activity string, h request.Handler, options ...option) {
	r.change(http.MethodDelete, path, activity, h, options...)
}

func (r router) change(method, path, activity string, h request.Handler, options ...option) {
	r.add(r.gate(method, path, append(options, recordedAs(activity))), path, h, method)
}

// get adds a read, also with HEAD.
func (r router) get(path string, h request.Handler, options ...option) {
	g := r.gate(http.MethodGet, path, options)
	if !g.Refresh {
		h = request.Within(r.ReadBudget, h)
	}
	r.add(g, path, h, http.MethodGet, http.MethodHead)
}

// stream adds a long-lived read, without a budget.
func (r router) stream(path string, h request.Handler, options ...option) {
	r.add(r.gate(http.MethodGet, path, options), path, h, http.MethodGet)
}

func (r router) gate(method, path string, options []option) request.Gate {
	g := request.Gate{Role: telematics.Admin, Level: auth.Operator, Operation: r.contract.Operation(method, path)}
	if method == http.MethodGet {
		g.Level = auth.Viewer
	}
	for _, option := range options {
		option(&g)
	}
	return g
}

func (r router) add(g request.Gate, path string, h request.Handler, methods ...string) {
	r.echo.Match(methods, echoPath(path), r.pipeline.Guard(g, h))
}

// unsigned adds a change without a token: its handler authenticates the caller otherwise.
func (r router) unsigned(path string, h request.Handler) {
	r.contract.Operation(http.MethodPost, path)
	r.echo.POST(path, func(c echo.Context) error { return h(request.CallOf(c)) })
}

// open adds a read that needs no token.
func (r router) open(path string, h echo.HandlerFunc) {
	r.echo.Match([]string{http.MethodGet, http.MethodHead}, path, h)
}

func echoPath(path string) string {
	return strings.NewReplacer("{", ":", "}", "").Replace(path)
}

// option changes the gate of a route.
type option func(*request.Gate)

func ofVehicle(g *request.Gate)       { g.Order = true }
func mayRefresh(g *request.Gate)      { g.Refresh = true }
func ofAllAgencies(g *request.Gate)   { g.Wide = true }
func keyed(g *request.Gate)           { g.Keyed = true }
func ofClient(g *request.Gate)        { g.Role, g.Level, g.Client = telematics.Client, 0, true }
func byAdministrator(g *request.Gate) { g.Level = auth.Administrator }
func triesCard(g *request.Gate)       { g.Card = true }
func urgent(g *request.Gate)          { g.Urgent = true }
func unlogged(g *request.Gate)        { g.Unlogged = true }

// withArea lets the body have an area, which may be larger than others.
func withArea(g *request.Gate) { g.MaxBody = areaBody }

func withScope(scope string) option     { return func(g *request.Gate) { g.Scope = scope } }
func listed(name string) option         { return func(g *request.Gate) { g.List = name } }
func recordedAs(activity string) option { return func(g *request.Gate) { g.Activity = activity } }

func checkedBy(check func(*request.Call, *contract.FieldErrors) error) option {
	return func(g *request.Gate) { g.Check = check }
}
