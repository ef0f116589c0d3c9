package httpapi

import (
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"motorpool/alerts"
	"motorpool/httpapi/auth"
	"motorpool/httpapi/contract"
	"motorpool/httpapi/errorcode"
	"motorpool/httpapi/request"
	"motorpool/rental"
	"motorpool/telematics"
)

// routes registers all routes of the public handler.
func (s *server) routes(e *echo.Echo) {
	r := router{server: s, echo: e}
	vehicles, commands, bookings, own := vehicles{s}, commands{s}, bookings{s}, clientControl{s}
	moves, market, edits, notes := transitions{s}, offers{s}, fleetEdits{s}, notes{s}
	telemetry, units, areas, agencies := telemetry{s}, units{s}, areaHandlers{s}, agencies{s}
	halts, keys, wallets, alertRoutes := haltHandlers{s}, agencyKeys{s}, wallets{s}, alertHandlers{s}
	amend := func(path, activity string, decide amendment, options ...option) {
		r.post(path, activity, bookings.changeHandler(activity, decide), options...)
	}

	for _, action := range telematics.ControlActions {
		r.post(
			"/api/v1/admin/vehicles/{vehicle}/control/"+string(action), telematics.CommandActivity(action),
			commands.order(action), ofVehicle,
		)
	}
	r.get("/api/v1/admin/vehicles/{vehicle}/status", vehicles.status, recordedAs(telematics.StatusRead), mayRefresh)
	r.get("/api/v1/admin/vehicles/{vehicle}/history", telemetry.history, recordedAs(telematics.HistoryRead), checkedBy(checkHistory))
	r.get("/api/v1/admin/vehicles/{vehicle}/trips", telemetry.trips, recordedAs(telematics.HistoryRead), checkedBy(checkHistory))
	r.get("/api/v1/admin/vehicles/{vehicle}/trips.gpx", telemetry.gpx, recordedAs(telematics.HistoryRead), checkedBy(checkHistory))
	r.get("/api/v1/admin/vehicles", vehicles.list, listed("vehicles"))
	r.get("/api/v1/admin/fleet", vehicles.fleetMap)
	r.get("/api/v1/admin/fleet/utilisation", bookings.utilisation)
	r.get("/api/v1/admin/fleet/free", bookings.freeVehicles)
	r.get("/api/v1/admin/vehicles/{vehicle}", vehicles.get)
	r.post("/api/v1/admin/vehicles", telematics.VehicleAdd, edits.vehicle, byAdministrator, checkedBy(checkEdit))
	r.patch("/api/v1/admin/vehicles/{vehicle}", telematics.VehicleChange, edits.vehicle, byAdministrator, checkedBy(checkEdit))
	r.get("/api/v1/admin/vehicles/{vehicle}/commands", commands.ofVehicle, listed("commands"))
	r.get("/api/v1/admin/vehicles/{vehicle}/notes", notes.list, listed("notes"))
	r.post("/api/v1/admin/vehicles/{vehicle}/notes", telematics.NoteAdd, notes.add, checkedBy(checkNote))
	r.get("/api/v1/admin/commands/{id}", commands.get)
	r.post("/api/v1/admin/commands", telematics.BulkOrder, commands.orderMany, checkedBy(checkBulk))
	r.get("/api/v1/admin/commands", commands.list, listed(fleetCommands))
	r.get("/api/v1/admin/bulk-commands", commands.bulkCommands, listed(bulkList))

	r.get("/api/v1/client/vehicles", market.find, ofClient, listed(offerList), checkedBy(checkOffers))
	r.get("/api/v1/client/vehicles/{vehicle}/availability", market.freeTimes, ofClient)
	r.get("/api/v1/client/stations", agencies.stationsOfClient, ofClient)
	r.get("/api/v1/client/areas", areas.ofClient, ofClient)
	r.post("/api/v1/client/quotes", rental.QuoteCreate, market.quote, ofClient, checkedBy(checkQuote))
	r.get("/api/v1/client/bookings", bookings.ofClient, ofClient, listed("bookings"))
	r.post("/api/v1/client/bookings", rental.BookingCreate, bookings.openOwn, ofClient, checkedBy(checkOwnDraft))
	r.get("/api/v1/client/bookings/{booking}", bookings.get, ofClient)
	r.get("/api/v1/client/bookings/{booking}/vehicle", vehicles.bookedVehicle, ofClient, recordedAs(telematics.StatusRead))
	amend("/api/v1/client/bookings/{booking}/cancel", rental.BookingCancel, cancelBooking, ofClient)
	r.get("/api/v1/client/bookings/{booking}/extend", bookings.previewExtension, ofClient)
	amend("/api/v1/client/bookings/{booking}/extend", rental.BookingExtend, extendBooking, ofClient, triesCard)
	r.get("/api/v1/client/bookings/{booking}/payment-action", bookings.paymentAction, ofClient)
	for _, action := range []telematics.Action{telematics.Lock, telematics.Unlock} {
		r.post(
			"/api/v1/client/bookings/{booking}/control/"+string(action), telematics.CommandActivity(action),
			own.order(action), ofClient,
		)
	}

	r.get("/api/v1/client/bookings/{booking}/transitions/{transition}", moves.get, ofClient)
	r.post("/api/v1/client/bookings/{booking}/transitions/{transition}/cancel", rental.TransitionCancel, moves.cancel, ofClient)
	for _, kind := range rental.TransitionKinds {
		activity, open := rental.TransitionActivity(kind), moves.open(kind)
		r.post("/api/v1/client/bookings/{booking}/"+string(kind), activity, open, ofClient, checkedBy(checkPosition))
		r.post("/api/v1/admin/bookings/{booking}/rental/"+string(kind), activity, open, checkedBy(checkOverride))
	}
	r.get("/api/v1/admin/bookings/{booking}/transitions", moves.list)
	r.get("/api/v1/admin/bookings/{booking}/transitions/{transition}", moves.get)
	r.post("/api/v1/admin/bookings/{booking}/transitions/{transition}/cancel", rental.TransitionCancel, moves.cancel)

	r.get("/api/v1/admin/bookings", bookings.list, listed("bookings"))
	r.post("/api/v1/admin/bookings", rental.BookingCreate, bookings.open, checkedBy(checkDraft))
	r.get("/api/v1/admin/bookings/{booking}", bookings.get)
	r.get("/api/v1/admin/bookings/{booking}/track", telemetry.track, recordedAs(telematics.HistoryRead))
	r.get("/api/v1/admin/bookings/{booking}/notes", notes.list, listed("notes"))
	r.post("/api/v1/admin/bookings/{booking}/notes", telematics.NoteAdd, notes.add, checkedBy(checkNote))
	r.get("/api/v1/admin/charges", bookings.charges, listed(chargeList))
	r.get("/api/v1/admin/clients", bookings.clients)
	r.get("/api/v1/admin/agencies/{agency}/clients/{client}/payment-methods", bookings.clientMethods)
	amend("/api/v1/admin/bookings/{booking}/start", rental.BookingStart, startBooking)
	amend("/api/v1/admin/bookings/{booking}/end", rental.BookingEnd, endBooking)
	amend("/api/v1/admin/bookings/{booking}/cancel", rental.BookingCancel, cancelBooking)
	r.get("/api/v1/admin/bookings/{booking}/extend", bookings.previewExtension)
	amend("/api/v1/admin/bookings/{booking}/extend", rental.BookingExtend, extendBooking)
	amend("/api/v1/admin/bookings/{booking}/vehicle", rental.BookingMove, moveBooking)
	amend("/api/v1/admin/bookings/{booking}/fees", rental.BookingFee, fineBooking, keyed, byAdministrator, checkedBy(checkMoney))
	amend("/api/v1/admin/bookings/{booking}/refund", rental.BookingRefund, refundBooking, keyed, byAdministrator, checkedBy(checkRefund))
	amend(
		"/api/v1/admin/bookings/{booking}/deposit/capture", rental.BookingCapture, captureDeposit, keyed,
		byAdministrator, checkedBy(checkMoney),
	)

	r.get("/api/v1/admin/halts", halts.list)
	r.put(
		"/api/v1/admin/halts", telematics.CommandsHalt, halts.halt, withScope(auth.ScopeHalt), byAdministrator, urgent,
		unlogged, checkedBy(checkHalt),
	)
	r.remove(
		"/api/v1/admin/halts", telematics.CommandsResume, halts.resume, withScope(auth.ScopeHalt), byAdministrator, urgent,
		unlogged, checkedBy(checkResume),
	)
	r.get("/api/v1/admin/agencies", agencies.list, listed("agencies"))
	r.get("/api/v1/admin/stations", agencies.stations, listed("stations"))
	r.post("/api/v1/admin/stations", telematics.StationAdd, edits.station, byAdministrator, checkedBy(checkEdit))
	r.patch("/api/v1/admin/stations/{station}", telematics.StationChange, edits.station, byAdministrator, checkedBy(checkEdit))
	r.get("/api/v1/admin/agencies/{agency}/tariffs", edits.tariffList)
	r.get("/api/v1/admin/agencies/{agency}/tariffs/{category}", edits.tariff)
	r.put("/api/v1/admin/agencies/{agency}/tariffs/{category}", rental.TariffChange, edits.setTariff, byAdministrator)
	r.remove("/api/v1/admin/agencies/{agency}/tariffs/{category}", rental.TariffChange, edits.removeTariff, byAdministrator)
	r.get("/api/v1/admin/agencies/{agency}/rental-rules", edits.rentalRules)
	r.put("/api/v1/admin/agencies/{agency}/rental-rules", rental.RulesChange, edits.setRentalRules, byAdministrator)
	r.get("/api/v1/admin/agencies/{agency}/alert-rules", alertRoutes.rules)
	r.put("/api/v1/admin/agencies/{agency}/alert-rules", alerts.RulesChange, alertRoutes.setRules, byAdministrator)
	r.get("/api/v1/admin/agencies/{agency}/keys", keys.list, withScope(auth.ScopeAgencyKeys))
	r.post(
		"/api/v1/admin/agencies/{agency}/keys", rental.AgencyKeyAdd, keys.add, withScope(auth.ScopeAgencyKeys), byAdministrator, unlogged,
	)
	r.post(
		"/api/v1/admin/agencies/{agency}/keys/{key}/retire", rental.AgencyKeyRetire, keys.retire,
		withScope(auth.ScopeAgencyKeys), byAdministrator, unlogged,
	)
	r.post(
		"/api/v1/admin/agencies/{agency}/keys/{key}/revoke", rental.AgencyKeyRevoke, keys.revoke,
		withScope(auth.ScopeAgencyKeys), byAdministrator, unlogged,
	)

	r.get("/api/v1/admin/agencies/{agency}/areas", areas.list)
	r.get("/api/v1/admin/agencies/{agency}/areas/{area}", areas.get)
	r.put("/api/v1/admin/agencies/{agency}/areas/{area}", rental.AreaPut, areas.put, byAdministrator, withArea)
	r.remove("/api/v1/admin/agencies/{agency}/areas/{area}", rental.AreaRemove, areas.remove, byAdministrator)

	r.get("/api/v1/admin/alerts", alertRoutes.list, listed("alerts"))
	r.get("/api/v1/admin/alerts/{id}", alertRoutes.get)
	r.post("/api/v1/admin/alerts/{id}/acknowledge", alerts.Acknowledge, alertRoutes.acknowledge, checkedBy(checkAcknowledgement))

	r.get("/api/v1/admin/me", me)
	r.get("/api/v1/admin/activity", activities{s}.list, listed("activity"))
	r.get("/api/v1/admin/units", units.list, listed("units"))
	r.get("/api/v1/admin/units/unknown", units.unknown, ofAllAgencies, listed("unknown_units"))
	r.get("/api/v1/admin/units/keys", units.keyHolders, ofAllAgencies)
	r.stream("/api/v1/admin/events", events{s}.follow, recordedAs(telematics.EventsRead))

	r.get("/api/v1/client/payment-methods", wallets.list, ofClient)
	r.post("/api/v1/client/payment-methods", rental.MethodAdd, wallets.add, ofClient, triesCard)
	r.remove("/api/v1/client/payment-methods/{id}", rental.MethodRemove, wallets.remove, ofClient)
	r.post("/api/v1/client/payment-methods/{id}/default", rental.MethodDefault, wallets.setDefault, ofClient, triesCard)
	r.unsigned("/webhooks/stripe", webhooks{s}.stripe)

	if s.SignIn != nil {
		browser := sessions{s}
		r.open("/auth/sign-in", func(c echo.Context) error { return browser.begin(request.CallOf(c)) })
		if s.SignIn.HasPasswords() {
			e.POST("/auth/sign-in", func(c echo.Context) error { return browser.enter(request.CallOf(c)) })
			r.open("/auth/password", func(c echo.Context) error { return browser.choosePassword(request.CallOf(c)) })
			e.POST("/auth/password", func(c echo.Context) error { return browser.setPassword(request.CallOf(c)) })
		}
		e.GET("/auth/callback", func(c echo.Context) error { return browser.finish(request.CallOf(c)) })
		e.GET("/auth/once", func(c echo.Context) error { return browser.redeem(request.CallOf(c)) })
		e.POST("/auth/sign-out", func(c echo.Context) error { return browser.end(request.CallOf(c)) })
	}
	r.open(errorcode.Path, echo.WrapHandler(http.HandlerFunc(errorcode.ServePage)))
	r.open("/openapi.yaml", func(c echo.Context) error { return c.Blob(http.StatusOK, "application/yaml", contractYAML) })
	r.open("/openapi.json", func(c echo.Context) error { return c.Blob(http.StatusOK, echo.MIMEApplicationJSON, s.contract.JSON()) })
	if start := s.startPage(); start != "" {
		r.open("/", func(c echo.Context) error { return c.Redirect(http.StatusFound, start) })
	} else {
		r.open("/", func(echo.Context) error { return errOnlyAPI })
	}
	if s.Console != nil {
		r.open(ConsolePath+"*", servePages(s.Console))
	}
	if !s.HideDocs {
		docs := servePages(contract.NewDocs(docsPath, s.DocsScript))
		r.open(docsPath, docs)
		r.open(docsPath+"/*", docs)
	}
}

const docsPath = "/docs"

// errOnlyAPI is the answer at the root where there are no pages.
var errOnlyAPI = &telematics.Error{
	Code:    errorcode.NotFound,
	Message: "This is the API of Motorpool, below /api/v1; its contract is at /openapi.yaml. There are no pages here.",
}

// startPage returns the relative path of the start page, since a proxy may add a prefix; empty:
// there is none.
func (s *server) startPage() string {
	switch {
	case s.Console != nil:
		return strings.TrimPrefix(ConsolePath, "/")
	case !s.HideDocs:
		return strings.TrimPrefix(docsPath, "/")
	}
	return ""
}

// ConsolePath is the path below which the console's pages are served.
const ConsolePath = "/console/"

// servePages serves pages. It answers 404, like any other address, for a path without a page.
func servePages(pages Pages) echo.HandlerFunc {
	return func(c echo.Context) error {
		if !pages.Has(c.Request().URL.Path) {
			return echo.ErrNotFound
		}
		pages.ServeHTTP(c.Response(), c.Request())
		return nil
	}
}
