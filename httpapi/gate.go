package httpapi

import (
	"context"
	"errors"
	"net/http"
	"runtime/trace"

	"github.com/labstack/echo/v4"

	"motorpool/httpapi/auth"
	"motorpool/httpapi/connections"
	"motorpool/httpapi/contract"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// gate is what a request must pass before its handler runs.
type gate struct {
	role      telematics.Role
	order     bool   // to a vehicle, which has a separate limit
	refresh   bool   // a read that may query the vehicle, which has a separate limit and takes its time
	wide      bool   // about what belongs to no agency
	keyed     bool   // by an idempotency key: it must not happen twice
	scope     string // that the token must have, too; empty: none
	urgent    bool   // so that no limit of requests holds it up
	client    bool   // from an agency's app, on behalf of its client
	card      bool   // tries a card, which has a separate limit
	activity  string // under which a refusal is written down; empty: it is not
	operation *contract.Operation
	list      string // whose cursors it takes; empty: it is no list
	// check reports what the contract cannot express, after the contract's own rules; nil: nothing. Its error is a
	// refusal for another reason than a rule.
	check func(*call, *contract.FieldErrors) error
}

// ofVehicle says that the path names the vehicle that is ordered something.
func ofVehicle(g *gate) { g.order = true }

// mayRefresh says that the path names the vehicle whose unit may be asked, and that the
// handler bounds its own time.
func mayRefresh(g *gate) { g.refresh = true }

// ofAllAgencies says that it is about what belongs to no agency, so none of them has a right to see it.
func ofAllAgencies(g *gate) { g.wide = true }

// keyed says that it moves money, so that its caller must give it a name under which it can be repeated.
func keyed(g *gate) { g.keyed = true }

// ofClient says that it is a client's, through its agency's app.
func ofClient(g *gate) { g.role, g.client = telematics.Client, true }

// addsCard says that a card is tried, which has a limit per hour.
func addsCard(g *gate) { g.card = true }

// withScope says that the role alone does not suffice.
func withScope(scope string) func(*gate) {
	return func(g *gate) { g.scope = scope }
}

// urgent says that no limit of requests holds it up; see limitUrgent.
func urgent(g *gate) { g.urgent = true }

func checkedBy(check func(*call, *contract.FieldErrors) error) func(*gate) {
	return func(g *gate) { g.check = check }
}

// listed says that it is a list, with cursors.
func listed(name string) func(*gate) {
	return func(g *gate) { g.list = name }
}

func recordedAs(activity string) func(*gate) {
	return func(g *gate) { g.activity = activity }
}

// pass returns the handler behind its gate.
func (s *server) pass(g gate, h echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if err := s.enter(c, g); err != nil {
			return err
		}
		return h(c)
	}
}

// enter has the order of checks of the whole API; 404 and 405 of the path come before it, by routing.
func (s *server) enter(c echo.Context, g gate) error {
	defer trace.StartRegion(c.Request().Context(), delivery.StepAdmit).End()
	call := callOf(c)
	if err := call.readBody(c); err != nil {
		return err // 413
	}
	token, err := s.Tokens.Authenticate(c.Request().Context(), c.Request().Header)
	if err != nil {
		challenge(c, err)
		return err // 401
	}
	connections.Prove(c.Request().Context(), token.Actor)
	call.actor, call.scopes, call.tokenUntil = token.Actor, token.Scopes, token.Until
	if err := s.admit(c, call, g); err != nil {
		challenge(c, err)
		s.recordRefusal(c, g, err)
		return err // 403, 401 of the signature, 429, 415, 400, 422
	}
	return nil
}

func (s *server) admit(c echo.Context, call *call, g gate) error {
	if call.actor.Role != g.role {
		return wrongRole(g.role)
	}
	if g.scope != "" && !call.scopes.Has(g.scope) {
		return missingScope(g.scope)
	}
	if g.wide && call.actor.Agency != 0 {
		return ofOneAgency(call.actor.Agency)
	}
	if g.client {
		signed, err := s.signatures.Check(c.Request(), call.body, call.actor.Agency)
		if err != nil {
			return err
		}
		call.signed, call.agencyCode = signed, signed.AgencyCode
	}
	wrong := &contract.FieldErrors{}
	call.readKey(c.Request(), wrong) // a repetition takes nothing from its vehicle's limit
	if err := s.limit(c, g); err != nil {
		return err
	}
	if g.keyed && call.key == nil && wrong.Err() == nil {
		return keyRequired()
	}
	return s.checkRequest(c, call, g, wrong)
}

// challenge tells the caller how to authenticate, on every 401.
func challenge(c echo.Context, err error) {
	if how := auth.Challenge(err); how != "" {
		c.Response().Header().Set(echo.HeaderWWWAuthenticate, how)
	}
}

// useSignature uses up the signature of a change.
func (s *server) useSignature(request *http.Request, call *call) error {
	if request.Method == http.MethodGet || request.Method == http.MethodHead {
		return nil
	}
	err := s.signatures.Use(request.Context(), call.signed, call.actor)
	if errors.Is(err, auth.ErrTooManyUses) {
		return &telematics.Error{Code: rateLimited, Retryable: true, RetryAfter: retrySignature,
			Message: "This client has signed too many changes within ten minutes. Try again in 60 seconds."}
	}
	return err
}

// checkRequest reports all rules that a request breaks together.
func (s *server) checkRequest(c echo.Context, call *call, g gate, wrong *contract.FieldErrors) error {
	values, err := g.operation.Validate(contract.Request{Request: c.Request(), Content: call.body, Query: c.QueryParams(), Param: c.Param}, wrong)
	if err != nil {
		return err // 415, 400
	}
	call.values = values
	if g.list != "" {
		checkCursor(c, g.list, wrong)
	}
	var refusal error
	if g.check != nil {
		refusal = g.check(call, wrong)
	}
	if err := wrong.Err(); err != nil {
		return err // 422
	}
	return refusal
}

// within bounds a read, so that a frozen server of ours costs its caller a 503 and
// not an endless wait.
func (s *server) within(h echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		request := c.Request()
		ctx, cancel := context.WithTimeout(request.Context(), s.ReadBudget)
		defer cancel()
		c.SetRequest(request.WithContext(ctx))
		defer c.SetRequest(request) // whose context tells whether the caller is still there
		return h(c)
	}
}

// recordRefusal records that the gate refused an actor [LAW-9]. A caller without a token,
// without a role, or without a valid signature adds no entry, so that it cannot fill the audit
// log. For all others see actorBound.
func (s *server) recordRefusal(c echo.Context, g gate, refusal error) {
	call := callOf(c)
	code := asError(refusal).Code
	if g.activity == "" || call.actor.Role == "" || statuses[code] == http.StatusUnauthorized {
		return
	}
	vehicle, _ := vehicleParam(c)
	line := call.line(g.activity, vehicle, s.Now())
	if booking, err := bookingParam(c); err == nil {
		line.Booking = int64(booking)
	}
	line.Outcome, line.Code = telematics.NotExecuted, code
	s.noteRefusal(context.WithoutCancel(c.Request().Context()), line)
}

// noteRefusal adds a refusal to the history, unless those of its actor have used up their bound.
func (s *server) noteRefusal(ctx context.Context, line telematics.Activity) {
	if !s.refused.take(line.Actor, s.Now(), s.actorRate(line.Actor)) {
		s.Refusals.Omit(ctx, line)
		return
	}
	s.Refusals.Note(ctx, line)
}
