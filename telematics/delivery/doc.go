// Package delivery is what the broker and its stores say to each other about commands and messages: an order, the claim of a lane, a
// pending entry, a settlement, an observation. It holds no connection and does no I/O.
package delivery
