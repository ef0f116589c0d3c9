package httpapi

import (
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"motorpool/httpapi/auth"
	"motorpool/httpapi/contract"
	"motorpool/rental"
	"motorpool/telematics"
)

// routes is the whole public surface.
func (s *server) routes(e *echo.Echo) {
	r := router{server: s, echo: e}

	r.control("/api/v1/admin/vehicles/{vehicle}/control/lock", telematics.Lock)
	r.control("/api/v1/admin/vehicles/{vehicle}/control/unlock", telematics.Unlock)
	r.control("/api/v1/admin/vehicles/{vehicle}/control/enable-driving", telematics.EnableDriving)
	r.control("/api/v1/admin/vehicles/{vehicle}/control/disable-driving", telematics.DisableDriving)
	r.control("/api/v1/admin/vehicles/{vehicle}/control/unlock-and-enable-driving", telematics.UnlockAndEnableDriving)
	r.control("/api/v1/admin/vehicles/{vehicle}/control/lock-and-disable-driving", telematics.LockAndDisableDriving)
	r.control("/api/v1/admin/vehicles/{vehicle}/control/attention", telematics.AttentionSignal)
	r.control("/api/v1/admin/vehicles/{vehicle}/control/open-top-case", telematics.OpenTopCase)

	r.get("/api/v1/admin/vehicles/{vehicle}/status", s.vehicleStatus, recordedAs(telematics.StatusRead), mayRefresh)
	r.get("/api/v1/admin/vehicles", s.vehicles, listed("vehicles"))
	r.get("/api/v1/admin/vehicles/{vehicle}", s.vehicle)
	r.get("/api/v1/admin/vehicles/{vehicle}/commands", s.vehicleCommands, listed("commands"))
	r.get("/api/v1/admin/commands/{id}", s.command)
	r.post("/api/v1/admin/commands", telematics.BulkOrder, s.orderMany, checkedBy(checkBulk))
	r.get("/api/v1/admin/commands", s.bulk)

	r.get("/api/v1/client/bookings", s.clientBookings, ofClient, listed("bookings"))
	r.get("/api/v1/client/bookings/{booking}", s.clientBooking, ofClient)
	r.amend("/api/v1/client/bookings/{booking}/cancel", rental.BookingCancel, cancelBooking, ofClient)
	r.amend("/api/v1/client/bookings/{booking}/extend", rental.BookingExtend, extendBooking, ofClient)
	r.get("/api/v1/client/bookings/{booking}/payment-action", s.paymentAction, ofClient)
	r.post("/api/v1/client/bookings/{booking}/control/lock", telematics.CommandActivity(telematics.Lock), s.orderOfClient(telematics.Lock), ofClient)
	r.post("/api/v1/client/bookings/{booking}/control/unlock", telematics.CommandActivity(telematics.Unlock), s.orderOfClient(telematics.Unlock), ofClient)

	r.get("/api/v1/admin/bookings", s.adminBookings, listed("bookings"))
	r.post("/api/v1/admin/bookings", rental.BookingCreate, s.openBooking, checkedBy(checkDraft))
	r.get("/api/v1/admin/bookings/{booking}", s.adminBooking)
	r.amend("/api/v1/admin/bookings/{booking}/start", rental.BookingStart, startBooking)
	r.amend("/api/v1/admin/bookings/{booking}/end", rental.BookingEnd, endBooking)
	r.amend("/api/v1/admin/bookings/{booking}/fees", rental.BookingFee, fineBooking, keyed, checkedBy(checkMoney))
	r.amend("/api/v1/admin/bookings/{booking}/refund", rental.BookingRefund, refundBooking, keyed, checkedBy(checkRefund))
	r.amend("/api/v1/admin/bookings/{booking}/deposit/capture", rental.BookingCapture, captureDeposit, keyed, checkedBy(checkMoney))

	r.get("/api/v1/admin/halts", s.halts)
	r.change(http.MethodPut, "/api/v1/admin/halts", telematics.CommandsHalt, s.halt, withScope(auth.ScopeHalt), urgent, checkedBy(checkHalt))
	r.remove("/api/v1/admin/halts", telematics.CommandsResume, s.resume, withScope(auth.ScopeHalt), urgent)
	r.get("/api/v1/admin/agencies/{agency}/keys", s.listAgencyKeys, withScope(auth.ScopeAgencyKeys))
	r.post("/api/v1/admin/agencies/{agency}/keys", rental.AgencyKeyAdd, s.addAgencyKey, withScope(auth.ScopeAgencyKeys))
	r.post("/api/v1/admin/agencies/{agency}/keys/{key}/retire", rental.AgencyKeyRetire, s.retireAgencyKey, withScope(auth.ScopeAgencyKeys))
	r.post("/api/v1/admin/agencies/{agency}/keys/{key}/revoke", rental.AgencyKeyRevoke, s.revokeAgencyKey, withScope(auth.ScopeAgencyKeys))

	r.get("/api/v1/admin/activity", s.activity, listed("activity"))
	r.get("/api/v1/admin/units/unknown", s.unknownUnits, ofAllAgencies, listed("unknown_units"))
	r.stream("/api/v1/admin/events", s.events, recordedAs(telematics.EventsRead))

	r.get("/api/v1/client/payment-methods", s.paymentMethods, ofClient)
	r.post("/api/v1/client/payment-methods", rental.MethodAdd, s.addPaymentMethod, ofClient, addsCard)
	r.remove("/api/v1/client/payment-methods/{id}", rental.MethodRemove, s.removePaymentMethod, ofClient)
	r.post("/api/v1/client/payment-methods/{id}/default", rental.MethodDefault, s.setDefaultPaymentMethod, ofClient)
	r.unsigned("/webhooks/stripe", s.stripeWebhook)

	r.open("/openapi.yaml", func(c echo.Context) error { return c.Blob(http.StatusOK, "application/yaml", contractYAML) })
	r.open("/openapi.json", func(c echo.Context) error { return c.Blob(http.StatusOK, echo.MIMEApplicationJSON, s.contract.JSON) })
	if !s.HideDocs {
		docs := serveDocs(contract.NewDocs(docsPath, s.DocsScript))
		r.open("/", func(c echo.Context) error { return c.Redirect(http.StatusFound, docsPath) })
		r.open(docsPath, docs)
		r.open(docsPath+"/*", docs)
	}
}

const docsPath = "/docs"

func serveDocs(docs *contract.Docs) echo.HandlerFunc {
	return func(c echo.Context) error {
		if !docs.Has(c.Request().URL.Path) {
			return echo.ErrNotFound
		}
		docs.ServeHTTP(c.Response(), c.Request())
		return nil
	}
}

// router adds routes to Echo. Paths are written as in the contract.
type router struct {
	*server
	echo *echo.Echo
}

func (r router) control(path string, a telematics.Action) {
	r.post(path, telematics.CommandActivity(a), r.order(a), ofVehicle)
}

// post adds a change, whose refusals are written down under the activity.
func (r router) post(path, activity string, h echo.HandlerFunc, options ...func(*gate)) {
	r.change(http.MethodPost, path, activity, h, options...)
}

// remove adds a removal, whose refusals are written down under the activity.
func (r router) remove(path, activity string, h echo.HandlerFunc, options ...func(*gate)) {
	r.change(http.MethodDelete, path, activity, h, options...)
}

func (r router) change(method, path, activity string, h echo.HandlerFunc, options ...func(*gate)) {
	g := gate{role: telematics.Admin, activity: activity, operation: r.contract.Operation(method, path)}
	for _, option := range options {
		option(&g)
	}
	r.echo.Add(method, echoPath(path), r.pass(g, h))
}

// get adds a read, which HEAD may ask for too.
func (r router) get(path string, h echo.HandlerFunc, options ...func(*gate)) {
	g := gate{role: telematics.Admin, operation: r.contract.Operation(http.MethodGet, path)}
	for _, option := range options {
		option(&g)
	}
	if !g.refresh {
		h = r.within(h)
	}
	r.echo.Match([]string{http.MethodGet, http.MethodHead}, echoPath(path), r.pass(g, h))
}

// stream adds a read that lasts: without a budget, and of no use to HEAD.
func (r router) stream(path string, h echo.HandlerFunc, options ...func(*gate)) {
	g := gate{role: telematics.Admin, operation: r.contract.Operation(http.MethodGet, path)}
	for _, option := range options {
		option(&g)
	}
	r.echo.GET(echoPath(path), r.pass(g, h))
}

// unsigned adds a change that needs no token, because who asks for it proves otherwise who they are.
func (r router) unsigned(path string, h echo.HandlerFunc) {
	r.contract.Operation(http.MethodPost, path)
	r.echo.POST(path, h)
}

// open adds a read that needs no token.
func (r router) open(path string, h echo.HandlerFunc) {
	r.echo.Match([]string{http.MethodGet, http.MethodHead}, path, h)
}

func echoPath(path string) string {
	return strings.NewReplacer("{", ":", "}", "").Replace(path)
}
