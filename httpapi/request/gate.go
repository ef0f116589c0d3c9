package request

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"motorpool/httpapi/auth"
	"motorpool/httpapi/connections"
	"motorpool/httpapi/contract"
	"motorpool/httpapi/errorcode"
	"motorpool/httpapi/signin"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
	"motorpool/tracing"
)

// Gate sets the checks that a request must pass before its handler runs.
type Gate struct {
	Role      telematics.Role
	Level     auth.Level // of an administrator, at least
	Order     bool       // commands the vehicle in the path; counts against its limit
	Refresh   bool       // may query the vehicle in the path; counts against its limit
	Wide      bool       // only for administrators of all agencies
	Keyed     bool       // needs an idempotency key: it moves money, so it must not happen twice
	Scope     string     // that the token must have; empty: none
	Urgent    bool       // no limit of requests delays it: see Limits.passUrgent
	Client    bool       // comes from an agency's app, for its client
	Card      bool       // tries a card; counts against a separate limit
	MaxBody   int64      // of the body, in bytes; 0: 64 KiB
	Activity  string     // of the audit log entry of a refusal; empty: none
	Unlogged  bool       // the handler adds no entry of what it refuses, so that its route does
	Operation *contract.Operation
	List      string // name of the list for its cursors; empty: not a list
	// Check adds violations of rules that the contract cannot express, after the contract's check;
	// nil: none. Its error is a refusal for another reason.
	Check func(*Call, *contract.FieldErrors) error
}

// Guard returns a handler that calls h if the call passes the gate.
func (p *Pipeline) Guard(g Gate, h Handler) echo.HandlerFunc {
	return func(c echo.Context) error {
		call := CallOf(c)
		if err := p.authorize(call, g); err != nil {
			return err
		}
		err := h(call)
		if err == nil || !g.Unlogged {
			return err
		}
		// A failure is no refusal; and a database that is not available takes no entry.
		if status, _ := errorcode.Status(AsError(err).Code); status < http.StatusInternalServerError {
			p.recordRefusal(call, g, err)
		}
		return err
	}
}

// authorize runs the checks of every request, in their order. The router has answered 404 and 405
// before.
func (p *Pipeline) authorize(c *Call, g Gate) error {
	defer tracing.Step(c.Ctx(), delivery.StepAdmit).End()
	token, err := p.Identify(c.Ctx(), c.Request())
	if err != nil {
		challenge(c, err)
		return err // 401
	}
	connections.MarkAuthenticated(c.Ctx(), token.Actor)
	c.Actor, c.Level, c.Scopes, c.TokenUntil = token.Actor, token.Level, token.Scopes, token.Until
	// After the token: others than actors must not fill the memory.
	if err := c.ReadBody(cmp.Or(g.MaxBody, maxBody)); err != nil {
		return err // 413
	}
	if err := p.checkAccess(c, g); err != nil {
		challenge(c, err)
		p.recordRefusal(c, g, err)
		return err // 403, 401 of the signature, 429, 415, 400, 422
	}
	return nil
}

// checkAccess checks role, level, scopes, agency signature and limits, and then the contract.
func (p *Pipeline) checkAccess(c *Call, g Gate) error {
	if c.Actor.Role != g.Role {
		return Forbidden("This requires an access token with the role %s.", g.Role)
	}
	if c.Level < g.Level {
		return Forbidden("This requires an access token of the level %s; yours has the level %s.", g.Level, c.Level)
	}
	if g.Scope != "" && !c.Scopes.Has(g.Scope) {
		return Forbidden("This requires an access token with the scope %s.", g.Scope)
	}
	if g.Wide && c.Actor.Agency != 0 {
		return Forbidden(
			"This requires the access token of an administrator of all agencies; yours is for agency %d.", c.Actor.Agency,
		)
	}
	var signed auth.Signed
	if g.Client {
		var err error
		if signed, err = p.Signatures.Check(c.HTTPRequest(), c.Body, c.Actor.Agency); err != nil {
			return err
		}
		c.agencyCode = signed.AgencyCode
	}
	wrong := &contract.FieldErrors{}
	c.readKey(wrong) // a repetition takes nothing from its vehicle's limit
	if err := p.Limits.pass(c, g, func() error { return p.useSignature(c, g, signed) }); err != nil {
		return err
	}
	if g.Keyed && c.Key == nil && wrong.Err() == nil {
		return keyRequired()
	}
	return checkRequest(c, g, wrong)
}

// challenge sets the header WWW-Authenticate for an error that is answered with 401.
func challenge(c *Call, err error) {
	if how := auth.Challenge(err); how != "" {
		c.SetHeader(echo.HeaderWWWAuthenticate, how)
	}
}

// useSignature records the use of the signature of a client's change; it ignores reads.
func (p *Pipeline) useSignature(c *Call, g Gate, signed auth.Signed) error {
	if method := c.Request().Method; !g.Client || method == http.MethodGet || method == http.MethodHead {
		return nil
	}
	err := p.Signatures.Use(c.Ctx(), signed, c.Actor)
	if errors.Is(err, auth.ErrTooManyUses) {
		return &telematics.Error{Code: signin.RateLimited, Retryable: true, RetryAfter: retrySignature,
			Message: "This client has signed too many changes within ten minutes. Try again in 60 seconds."}
	}
	return err
}

// checkRequest returns one error with all rules that a request breaks.
func checkRequest(c *Call, g Gate, wrong *contract.FieldErrors) error {
	values, err := g.Operation.Validate(
		contract.Request{Request: c.Request(), Content: c.Body, Query: c.QueryParams(), Param: c.Param}, wrong,
	)
	if err != nil {
		return err // 415, 400
	}
	c.Values = values
	if g.List != "" {
		checkCursor(c, g.List, wrong)
	}
	var refusal error
	if g.Check != nil {
		refusal = g.Check(c, wrong)
	}
	if err := wrong.Err(); err != nil {
		return err // 422
	}
	return refusal
}

// Within bounds a read, so that its caller gets a 503 if a dependency hangs.
func Within(budget time.Duration, h Handler) Handler {
	return func(c *Call) error {
		whole := c.Ctx()
		ctx, cancel := context.WithTimeout(whole, budget)
		defer cancel()
		c.context = ctx
		defer func() { c.context = whole }() // which ends when the caller disconnects
		return h(c)
	}
}

// recordRefusal records that an actor was refused [LAW-9]. A caller without a token, without a
// role, or without a valid signature adds no entry, so that it cannot fill the audit log.
func (p *Pipeline) recordRefusal(c *Call, g Gate, refusal error) {
	code := AsError(refusal).Code
	if status, _ := errorcode.Status(code); g.Activity == "" || c.Actor.Role == "" || status == http.StatusUnauthorized {
		return
	}
	entry := c.Entry(g.Activity, c.VehicleID())
	entry.Booking = int64(c.BookingID())
	entry.Outcome, entry.Code = telematics.NotExecuted, code
	p.Audit.RecordLimited(context.WithoutCancel(c.Ctx()), entry)
}
