package httpapi

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"motorpool/httpapi/auth"
	"motorpool/httpapi/connections"
	"motorpool/httpapi/contract"
	"motorpool/httpapi/errorcode"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
	"motorpool/tracing"
)

// gate sets the checks that a request must pass before its handler runs.
type gate struct {
	role      telematics.Role
	level     auth.Level // of an administrator, at least
	order     bool       // commands the vehicle in the path; counts against its limit
	refresh   bool       // may query the vehicle in the path; counts against its limit
	wide      bool       // only for administrators of all agencies
	keyed     bool       // needs an idempotency key: it moves money, so it must not happen twice
	scope     string     // that the token must have; empty: none
	urgent    bool       // no limit of requests delays it: see limits.passUrgent
	client    bool       // comes from an agency's app, for its client
	card      bool       // tries a card; counts against a separate limit
	activity  string     // of the audit log entry of a refusal; empty: none
	operation *contract.Operation
	list      string // name of the list for its cursors; empty: not a list
	// check adds violations of rules that the contract cannot express, after the contract's check;
	// nil: none. Its error is a refusal for another reason.
	check func(*call, *contract.FieldErrors) error
}

// option changes the gate of a route.
type option func(*gate)

func ofVehicle(g *gate)       { g.order = true }
func mayRefresh(g *gate)      { g.refresh = true }
func ofAllAgencies(g *gate)   { g.wide = true }
func keyed(g *gate)           { g.keyed = true }
func ofClient(g *gate)        { g.role, g.level, g.client = telematics.Client, 0, true }
func byAdministrator(g *gate) { g.level = auth.Administrator }
func addsCard(g *gate)        { g.card = true }
func urgent(g *gate)          { g.urgent = true }

func withScope(scope string) option     { return func(g *gate) { g.scope = scope } }
func listed(name string) option         { return func(g *gate) { g.list = name } }
func recordedAs(activity string) option { return func(g *gate) { g.activity = activity } }

func checkedBy(check func(*call, *contract.FieldErrors) error) option {
	return func(g *gate) { g.check = check }
}

// guard returns a handler that calls h if the call passes the gate.
func (s *server) guard(g gate, h handler) echo.HandlerFunc {
	return func(c echo.Context) error {
		call := callOf(c)
		if err := s.authorize(call, g); err != nil {
			return err
		}
		return h(call)
	}
}

// authorize runs the checks of every request, in their order. The router has answered 404 and 405
// before.
func (s *server) authorize(c *call, g gate) error {
	defer tracing.Step(c.ctx(), delivery.StepAdmit).End()
	if err := c.readBody(maxBody); err != nil {
		return err // 413
	}
	token, err := s.identify(c.ctx(), c.Request())
	if err != nil {
		challenge(c, err)
		return err // 401
	}
	connections.MarkAuthenticated(c.ctx(), token.Actor)
	c.actor, c.level, c.scopes, c.tokenUntil = token.Actor, token.Level, token.Scopes, token.Until
	if err := s.checkAccess(c, g); err != nil {
		challenge(c, err)
		s.recordRefusal(c, g, err)
		return err // 403, 401 of the signature, 429, 415, 400, 422
	}
	return nil
}

// checkAccess checks role, level, scopes, agency signature and limits, and then the contract.
func (s *server) checkAccess(c *call, g gate) error {
	if c.actor.Role != g.role {
		return wrongRole(g.role)
	}
	if c.level < g.level {
		return lowLevel(g.level, c.level)
	}
	if g.scope != "" && !c.scopes.Has(g.scope) {
		return missingScope(g.scope)
	}
	if g.wide && c.actor.Agency != 0 {
		return ofOneAgency(c.actor.Agency)
	}
	var signed auth.Signed
	if g.client {
		var err error
		if signed, err = s.signatures.Check(c.request(), c.body, c.actor.Agency); err != nil {
			return err
		}
		c.agencyCode = signed.AgencyCode
	}
	wrong := &contract.FieldErrors{}
	c.readKey(wrong) // a repetition takes nothing from its vehicle's limit
	if err := s.limits.pass(c, g, func() error { return s.useSignature(c, g, signed) }); err != nil {
		return err
	}
	if g.keyed && c.key == nil && wrong.Err() == nil {
		return keyRequired()
	}
	return checkRequest(c, g, wrong)
}

// challenge sets the header WWW-Authenticate for an error that is answered with 401.
func challenge(c *call, err error) {
	if how := auth.Challenge(err); how != "" {
		c.setHeader(echo.HeaderWWWAuthenticate, how)
	}
}

// useSignature records the use of the signature of a client's change; it ignores reads.
func (s *server) useSignature(c *call, g gate, signed auth.Signed) error {
	if method := c.Request().Method; !g.client || method == http.MethodGet || method == http.MethodHead {
		return nil
	}
	err := s.signatures.Use(c.ctx(), signed, c.actor)
	if errors.Is(err, auth.ErrTooManyUses) {
		return &telematics.Error{Code: rateLimited, Retryable: true, RetryAfter: retrySignature,
			Message: "This client has signed too many changes within ten minutes. Try again in 60 seconds."}
	}
	return err
}

// checkRequest returns one error with all rules that a request breaks.
func checkRequest(c *call, g gate, wrong *contract.FieldErrors) error {
	values, err := g.operation.Validate(
		contract.Request{Request: c.Request(), Content: c.body, Query: c.QueryParams(), Param: c.Param}, wrong,
	)
	if err != nil {
		return err // 415, 400
	}
	c.values = values
	if g.list != "" {
		checkCursor(c, g.list, wrong)
	}
	var refusal error
	if g.check != nil {
		refusal = g.check(c, wrong)
	}
	if err := wrong.Err(); err != nil {
		return err // 422
	}
	return refusal
}

// within bounds a read, so that its caller gets a 503 if a dependency hangs.
func within(budget time.Duration, h handler) handler {
	return func(c *call) error {
		whole := c.ctx()
		ctx, cancel := context.WithTimeout(whole, budget)
		defer cancel()
		c.context = ctx
		defer func() { c.context = whole }() // which ends when the caller disconnects
		return h(c)
	}
}

// recordRefusal records that the gate refused an actor [LAW-9]. A caller without a token, without a
// role, or without a valid signature adds no entry, so that it cannot fill the audit log.
func (s *server) recordRefusal(c *call, g gate, refusal error) {
	code := asError(refusal).Code
	if status, _ := errorcode.Status(code); g.activity == "" || c.actor.Role == "" || status == http.StatusUnauthorized {
		return
	}
	entry := c.entry(g.activity, c.vehicleID())
	entry.Booking = int64(c.bookingID())
	entry.Outcome, entry.Code = telematics.NotExecuted, code
	s.audit.recordLimited(context.WithoutCancel(c.ctx()), entry)
}
