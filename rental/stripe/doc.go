// Package stripe implements [rental.Processor] with Stripe, or another server with the same API.
//
//	rental.Processor ─► Processor ─► stripe-go ─► wire ─► api.stripe.com
//	                        │                      └── was the request sent, and what was the response?
//	rental.Notice    ◄── Read ◄── a webhook, signed
//
// # Laws
//
//   - There are no retries here: the caller decides what to repeat, with which key [STR-1]. Only
//     net/http repeats a request, once, with the same key, if an idle connection turns out to be
//     dead before any response.
//   - An error states whether money may have moved. If the response does not rule it out, it may
//     have [STR-2].
//   - Objects that Stripe sends with an error (and with them a payment's client secret) are in no
//     error and in no log [STR-3].
//   - No global state of the library is used, and requests contain no data about this machine that
//     they do not need [STR-4].
//   - Amounts are whole numbers, converted in one table [STR-5].
//
// Calls of Stripe fail with a *rental.ProcessorError, which says whether the call may have been
// executed.
package stripe
