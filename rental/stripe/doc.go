// Package stripe is the payment processor [rental.Processor] at Stripe, or at whatever speaks the
// same API at another address.
//
//	rental.Processor ─► Processor ─► stripe-go ─► wire ─► api.stripe.com
//	                        │                      └── did the request leave, and what was answered?
//	rental.Notice    ◄── Read ◄── a webhook, signed
//
// # Laws
//
//   - Nothing is repeated here: the caller knows what may be repeated, and under which key [STR-1].
//     Only net/http does, once, under the same key, where a connection that was kept open turns
//     out to be dead before any answer.
//   - An error says what is known of the money. Where the answer does not say, it may have moved
//     [STR-2].
//   - What Stripe sends with an error (objects, and with them a payment's client secret) is in no
//     error and in no log [STR-3].
//   - No state of the library's own is used, and nothing tells Stripe of this machine but what a
//     request needs [STR-4].
//   - Amounts are whole numbers, converted in one table [STR-5].
package stripe
