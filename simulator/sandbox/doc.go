// Package sandbox is a payment processor for development and tests: an HTTP server that speaks the part of Stripe's API that the
// adapter rental/stripe uses, remembers what it did, and breaks on demand. The production service never links it.
//
//	POST                                                       GET
//	/v1/customers, /v1/customers/{id}                          /v1/customers/{id}
//	/v1/payment_methods/{id}/attach, …/detach                  /v1/payment_methods/{id}
//	/v1/payment_intents, …/{id}/confirm, …/capture, …/cancel   /v1/payment_intents, /v1/payment_intents/{id}
//	/v1/refunds                                                /v1/refunds, /v1/refunds/{id}
//
// Requests are form-encoded, answers are JSON, errors have Stripe's types and codes; a parameter that is not known here is an
// error, as it is there. Cards are those that Stripe publishes for tests (pm_card_visa …): see cards.go.
//
// # As at Stripe
//
//   - A request under an idempotency key is carried out once. Its answer is repeated, a 500 too; other parameters under
//     the key are an error, and so is a second request while the first is being carried out.
//   - One object is changed by one request at a time; who waits too long gets a 429 (lock_timeout).
//   - A card whose owner must confirm is refused in the owner's absence. The owner confirms with the payment's client secret and
//     a publishable key (pk_test_…); here that is all that the owner has to do.
//   - Events are posted with a signature, again until they are taken, in no promised order.
//   - Amounts of three-decimal currencies end in 0, those of ISK and UGX in 00.
//
// # Unlike Stripe
//
//   - Keys and events are kept for ever, there is no smallest amount, and a hold does not expire.
//   - Nothing is expanded, and there is only one account.
//
// What breaks is ordered by [Server.Break] or under /sandbox/, which is for this machine alone: /sandbox/faults,
// /sandbox/cards/{id}, /sandbox/webhook; GET /sandbox/ledger lists every movement of money.
package sandbox
