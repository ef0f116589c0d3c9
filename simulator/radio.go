package simulator

import (
	"context"

	"motorpool/telematics"
	v1 "motorpool/telematics/v1"
)

// Radio connects a unit to its broker. MQTT is the real one.
type Radio interface {
	// Dial returns a connection that is subscribed to the unit's commands. It calls deliver for each of them, which
	// does not block, from any goroutine. Cancelling ctx afterwards does not end the connection.
	Dial(ctx context.Context, login Login, deliver func(Message)) (Connection, error)
}

// Login is what a unit says when it connects. Its client id is its serial [TOP-4].
type Login struct {
	Unit     telematics.Unit // the MQTT user name too
	Password string
	Will     []byte // published by the broker, retained, on the presence topic when the connection breaks
}

// Message is what the broker delivered from the unit's command topic.
type Message struct {
	Payload  []byte
	Retained bool
}

// Connection is one MQTT connection. It is never used again once lost.
type Connection interface {
	// Publish hands over a message at QoS 1. It blocks for a second at most.
	Publish(channel v1.Channel, payload []byte, retained bool) error
	Lost() <-chan struct{} // closed when the connection is gone
	Close()                // with DISCONNECT: the last will is not published
	Cut()                  // without: it is
}
