// Package errorcode has what each code of an error of the API means: its HTTP status, its cause,
// and what the caller does. The page at [Path] is written from it, and openapi.yaml is held to it.
// It also has what drivers read instead of the messages for staff.
package errorcode

import (
	"fmt"
	"html/template"
	"maps"
	"net/http"
	"slices"

	"motorpool/alerts"
	"motorpool/httpapi/auth"
	"motorpool/httpapi/contract"
	"motorpool/httpapi/signin"
	"motorpool/rental"
	"motorpool/telematics"
)

// Codes of requests that are refused before anything is sent to a vehicle.
const (
	NotFound           telematics.Code = "not_found"
	MethodNotAllowed   telematics.Code = "method_not_allowed"
	BodyTooLarge       telematics.Code = "body_too_large"
	ServiceUnavailable telematics.Code = "service_unavailable"

	HaltNotFound            telematics.Code = "halt_not_found"
	AgencyKeyNotFound       telematics.Code = "agency_key_not_found"
	IdempotencyKeyRequired  telematics.Code = "idempotency_key_required"
	WebhookSignatureInvalid telematics.Code = "webhook_signature_invalid"
)

// kind is what a code means.
type kind struct {
	status int
	cause  string
	remedy string // what the caller does
}

// kinds has each code.
var kinds = map[telematics.Code]kind{
	contract.MalformedJSON: {http.StatusBadRequest,
		"The body is not JSON, or could not be read to its end.",
		"Correct the body. The same request will fail again."},
	IdempotencyKeyRequired: {http.StatusBadRequest,
		"The request moves money (a fee, a refund, a capture) and has no `Idempotency-Key`.",
		"Choose a new key for this request, store it, and send it in the header; repeat with the same key."},
	WebhookSignatureInvalid: {http.StatusBadRequest,
		"A notice of the payment processor has no signature, or a stale or wrong one.",
		"Nothing, where an attacker sent it. Otherwise set `--stripe-webhook-secret` to the secret of this endpoint."},
	rental.DefaultMethod: {http.StatusBadRequest,
		"The payment method to remove is the default.",
		"Make another payment method the default, then remove this one."},
	rental.MethodInUse: {http.StatusBadRequest,
		"An active booking, or a payment that is not finished, uses the payment method.",
		"Remove it after the booking has ended and the payment is settled."},
	auth.Unauthenticated: {http.StatusUnauthorized,
		"The request has no access token, or one that has expired, is not signed by the issuer, or is for another audience.",
		"Get a new access token and repeat the request."},
	auth.SignatureMissing: {http.StatusUnauthorized,
		"A request to `/api/v1/client` has no header `X-Agency-Signature`.",
		"Sign each request in the agency's app, with a key of that agency. A new access token does not help."},
	auth.SignatureInvalid: {http.StatusUnauthorized,
		"The signature is malformed, is not of this request, or its key is unknown, retired or revoked.",
		"Compare what the app signs with `motorpool sign --explain`; check the state of the key."},
	auth.SignatureStale: {http.StatusUnauthorized,
		"The signature was made more than 300 s ago, or in the future.",
		"Compute the time from `timestamp` of this answer, and sign again."},
	auth.SignatureReplayed: {http.StatusUnauthorized,
		"The signature of a change was used before.",
		"Sign each request anew, with a new nonce. To repeat a change safely, use an `Idempotency-Key`."},
	auth.Forbidden: {http.StatusForbidden,
		"The access token has not the role, level, scope or agency that this endpoint needs; `message` names it.",
		"Use a token that has it, or ask its issuer for one."},
	auth.AgencyMismatch: {http.StatusForbidden,
		"The agency of the access token is not the one whose key signed the request.",
		"Use token and key of the same agency."},
	NotFound: {http.StatusNotFound,
		"There is no such endpoint. Paths are exact: a trailing slash is another path.",
		"Correct the path; `/openapi.yaml` has all of them."},
	telematics.VehicleNotFound: {http.StatusNotFound,
		"The vehicle does not exist, or belongs to another agency.",
		"Check the id, and the agency of the token."},
	telematics.CommandNotFound: {http.StatusNotFound,
		"The command does not exist, or belongs to another agency.",
		"Check the id, and the agency of the token."},
	telematics.BulkNotFound: {http.StatusNotFound,
		"The bulk command does not exist, or belongs to another agency.",
		"Check the id, and the agency of the token."},
	telematics.StationNotFound: {http.StatusNotFound,
		"The station does not exist, or belongs to another agency.",
		"Check the id; `GET /api/v1/admin/stations` lists what the token may see."},
	alerts.NotFound: {http.StatusNotFound,
		"The alert does not exist, belongs to another agency, or is about a person and the token is not an administrator's.",
		"Check the id; `GET /api/v1/admin/alerts` lists what the token may see."},
	HaltNotFound: {http.StatusNotFound,
		"No such halt is in force.",
		"Read which halts are in force (`GET /api/v1/admin/halts`)."},
	telematics.AgencyNotFound: {http.StatusNotFound,
		"The agency does not exist, or the token may not see it.",
		"Check the id; `GET /api/v1/admin/agencies` lists what the token may see."},
	AgencyKeyNotFound: {http.StatusNotFound,
		"The agency has no such key, or it is revoked.",
		"List the keys of the agency, and use one of those ids."},
	rental.TariffNotFound: {http.StatusNotFound,
		"The agency has no tariff for vehicles of that category.",
		"Check the category; `GET /api/v1/admin/agencies/{agency}/tariffs` lists those that have one."},
	rental.BookingNotFound: {http.StatusNotFound,
		"The booking does not exist, or belongs to another client or agency.",
		"Check the id, and whose token it is."},
	rental.AreaNotFound: {http.StatusNotFound,
		"The agency has no such area.",
		"List the areas of the agency, and use one of those names."},
	rental.AreaChanged: {http.StatusPreconditionFailed,
		"The area was changed since the answer whose `ETag` the request has in `If-Match`. Nothing was changed.",
		"Read the area again, and decide anew."},
	rental.AreaLimit: {http.StatusUnprocessableEntity,
		"The agency has as many areas, or as large ones, as are allowed.",
		"Remove areas, or use fewer positions."},
	rental.TransitionNotFound: {http.StatusNotFound,
		"The transition does not exist, or is of another booking.",
		"Read the booking: `transition` is its newest one."},
	rental.MethodNotFound: {http.StatusNotFound,
		"The payment method does not exist, or belongs to another client.",
		"List the payment methods again; it may have been removed."},
	MethodNotAllowed: {http.StatusMethodNotAllowed,
		"The endpoint exists, and has not this method.",
		"Use a method of the header `Allow`."},
	telematics.IDTaken: {http.StatusConflict,
		"A vehicle or station with this id is on record, perhaps of another agency. Nothing was changed.",
		"If you repeat a request, it was carried out before. Otherwise choose another id, or change what is on record with PATCH."},
	telematics.VehicleHasNoUnit: {http.StatusConflict,
		"No telematics unit is installed in the vehicle.",
		"Install a unit and assign it to the vehicle."},
	telematics.CommandNotSupported: {http.StatusConflict,
		"The vehicle, or its unit as it is installed, does not have the command.",
		"Offer only the commands in `capabilities` of the vehicle."},
	telematics.BestEffortIsDenied: {http.StatusConflict,
		"The command opens the vehicle, whose unit checks no expiry and may start it late, and the agency has not allowed that.",
		"A driver contacts the agency. An operator who accepts late openings sets `best_effort_unlock` of the agency to `allow`."},
	telematics.VehicleStateConflict: {http.StatusConflict,
		"The state of the vehicle forbids the command now; `detail` says what, such as `moving`.",
		"Stop the vehicle, close the door, or what `detail` names; then repeat the request."},
	telematics.CommandInProgress: {http.StatusConflict,
		"Another command to the same part of the vehicle is open; `command_id` names it.",
		"Wait `retry_after` seconds and repeat the request."},
	telematics.IdempotencyInProgress: {http.StatusConflict,
		"The first request with this `Idempotency-Key` is still running.",
		"Repeat the request with the same key after `retry_after` seconds."},
	rental.VehicleNotAvailable: {http.StatusConflict,
		"The vehicle cannot be booked or handed over: it has another booking, is withdrawn, has neither a " +
			"tariff nor a rate, a rule keeps drivers from opening it, or it lacks a command that a rental needs.",
		"Choose another vehicle or another time. `message` says what stands in the way; an operator mends what is not a booking."},
	rental.BookingLimit: {http.StatusConflict,
		"The client has as many upcoming and active bookings as the agency allows one that books itself, or it made five bookings " +
			"of the vehicle within 24 hours that it cancelled, or that lapsed.",
		"Cancel or end one, then book; or book another vehicle. `message` says which."},
	rental.UnpaidLimit: {http.StatusConflict,
		"The client owes as many payments as the agency allows one that books itself.",
		"Let the client pay: another default card, or the confirmation that its bank asks for; then book."},
	rental.QuoteExpired: {http.StatusConflict,
		"The quote is older than 10 minutes, its time is over, or the agency has another currency since.",
		"Request another one, show its price, and book with that."},
	rental.BookingNotCancellable: {http.StatusConflict,
		"The booking has started, is over, or the time to cancel has passed.",
		"Read the booking again; `can_cancel` says whether it can be cancelled."},
	rental.BookingNotExtendable: {http.StatusConflict,
		"The booking is over or was extended too often, a payment of it is owed, or the vehicle has another booking afterwards.",
		"Read the booking again; `can_extend` says whether it can be extended. Try an earlier end."},
	rental.BookingNotActive: {http.StatusConflict,
		"The booking has not started, or is over; its client may not open the vehicle.",
		"Wait for the start of the booking, where it is upcoming."},
	rental.BookingStateConflict: {http.StatusConflict,
		"The state of a booking or of its payments forbids the change; `message` says which.",
		"Read the booking again, and decide anew."},
	rental.TransitionIsOpen: {http.StatusConflict,
		"A start, pause, resumption or end of the rental is still in progress.",
		"Wait until it has ended; `transition` of the booking says how far it is."},
	rental.TransitionCancelled: {http.StatusConflict,
		"The start was given up, by its client or by staff.",
		"Start again, if you still want the vehicle."},
	rental.ReturnNotPossible: {http.StatusConflict,
		"The vehicle is not as it must be for a return; `checks` has each condition, and what the vehicle reported. Nothing was sent.",
		"Mend what `ok: false` names, and end again. Staff may override with a reason."},
	rental.TooFar: {http.StatusConflict,
		"The client is farther from the vehicle than its agency allows for a start. Nothing was sent.",
		"Go to the vehicle, and start again."},
	rental.TooEarly: {http.StatusConflict,
		"The booking begins later: its client can start it, and see its vehicle, from 15 minutes before.",
		"Wait `retry_after` seconds, and repeat the request."},
	rental.BookingOverdue: {http.StatusConflict,
		"The booking should have ended; its client may lock the vehicle, and not open it.",
		"End it. Else contact the agency, which can extend it."},
	rental.PaymentRequired: {http.StatusConflict,
		"A payment for the booking is owed.",
		"Let the client pay: another card, or the confirmation that its bank asks for."},
	rental.PaymentAwaited: {http.StatusConflict,
		"The first payment of the booking has no result yet.",
		"Repeat the request after `retry_after` seconds."},
	BodyTooLarge: {http.StatusRequestEntityTooLarge,
		"The body is larger than 64 KiB (an area: 264 KiB; a notice of the payment processor: 256 KiB).",
		"Send less; divide a bulk command."},
	contract.UnsupportedMediaType: {http.StatusUnsupportedMediaType,
		"The body has another type than `application/json`, or a `Content-Encoding`.",
		"Send JSON in UTF-8 with `Content-Type: application/json`, not compressed."},
	contract.ValidationFailed: {http.StatusUnprocessableEntity,
		"A member, query parameter or header breaks its rule, is missing, unknown or repeated; `errors` names each one.",
		"Correct what `errors` names. The same request will fail again."},
	telematics.IdempotencyMismatch: {http.StatusUnprocessableEntity,
		"The `Idempotency-Key` was used for another request.",
		"Use a new key for each new request."},
	rental.CardDeclined: {http.StatusUnprocessableEntity,
		"The bank declined the card; `reason` is the bank's.",
		"Let the client use another card, or ask its bank."},
	rental.MethodInvalid: {http.StatusUnprocessableEntity,
		"The payment method cannot be used: it is unknown to the payment processor, not a card, or another client's.",
		"Collect the card again, and use the new id."},
	rental.MethodLimit: {http.StatusUnprocessableEntity,
		"The client has as many payment methods as are allowed.",
		"Remove one, then add the new one."},
	rental.MethodRequired: {http.StatusUnprocessableEntity,
		"The client has no payment method; a booking needs one.",
		"Let the client add a card first."},
	rental.RefundExceedsPaid: {http.StatusUnprocessableEntity,
		"The refund is more than is left of what was paid.",
		"Read the charges of the booking, and refund at most what is left."},
	signin.RateLimited: {http.StatusTooManyRequests,
		"A limit is used up; `message` names it.",
		"Wait `retry_after` seconds, and send less often; the headers `RateLimit-…` say how much is left."},
	telematics.Internal: {http.StatusInternalServerError,
		"A fault of the service, which is logged with the `request_id`.",
		"Repeat a read. Before you repeat a change without an `Idempotency-Key`, look whether it was done. Report the `request_id`."},
	telematics.CommandRejected: {http.StatusBadGateway,
		"The unit refused the command; `reason` says why. With `outcome` `unknown` it may still execute another copy.",
		"With `not_executed` correct the cause (the clock or the keys of the unit); " +
			"with `unknown` read the command after `retry_after` seconds first.",
	},
	telematics.CommandFailed: {http.StatusBadGateway,
		"The vehicle tried and failed.",
		"Look at the vehicle; repeat the command when the cause is gone."},
	telematics.VehicleOffline: {http.StatusServiceUnavailable,
		"The unit has no connection; nothing was sent.",
		"Repeat after `retry_after` seconds; a driver tries where the vehicle has reception."},
	telematics.TelematicsUnavailable: {http.StatusServiceUnavailable,
		"A server that commands need is unavailable, or the command expired before it could be sent; nothing was executed.",
		"Repeat after `retry_after` seconds. An operator sees on `/readyz` which server is missing."},
	telematics.CommandsHalted: {http.StatusServiceUnavailable,
		"An operator has halted commands; nothing was sent.",
		"Wait until the halt is lifted; do not repeat in a loop."},
	rental.ProcessorUnavailable: {http.StatusServiceUnavailable,
		"The payment processor is unavailable.",
		"Repeat after `retry_after` seconds, with the same `Idempotency-Key`."},
	ServiceUnavailable: {http.StatusServiceUnavailable,
		"A server that the answer needs is unavailable.",
		"Repeat after `retry_after` seconds. An operator sees on `/readyz` which server is missing."},
	telematics.CommandTimeout: {http.StatusGatewayTimeout,
		"The vehicle has not answered in time. It may have executed the command, or may still do so.",
		"Read the command (`command_id`) after `retry_after` seconds, and look at the vehicle, before you repeat it."},
}

// Status returns the HTTP status of a code, or false if the API does not answer it.
func Status(code telematics.Code) (int, bool) {
	k, ok := kinds[code]
	return k.status, ok
}

// Path is the path of the page that explains each code.
const Path = "/errors"

// URL returns where a code is explained, on this server.
func URL(code telematics.Code) string { return Path + "#" + string(code) }

var page = template.Must(template.New("errors").Parse(`<!DOCTYPE html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Errors of Motorpool</title>
<h1>Errors</h1>
<p>An error of the API has a <code>code</code>. This page says what each one means, and what the caller does.</p>
{{range .}}<h2 id="{{.Code}}">{{.Code}}</h2>
<p>Status {{.Status}}. {{.Cause}}</p>
<p>What to do: {{.Remedy}}</p>
{{end}}</html>
`))

// explained is an error as the page shows it.
type explained struct {
	Code          telematics.Code
	Status        string
	Cause, Remedy string
}

// explainAll returns all errors by status and code.
func explainAll() []explained {
	var all []explained
	for _, code := range slices.Sorted(maps.Keys(kinds)) {
		k := kinds[code]
		all = append(all, explained{code, fmt.Sprintf("%d %s", k.status, http.StatusText(k.status)), k.cause, k.remedy})
	}
	slices.SortStableFunc(all, func(a, b explained) int { return kinds[a.Code].status - kinds[b.Code].status })
	return all
}

// ServePage answers with the page that explains each code.
func ServePage(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=UTF-8")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	_ = page.Execute(w, explainAll()) // the caller may be gone
}
