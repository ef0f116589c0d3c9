package telematics

// Retaining is a Dialect whose units leave messages at the MQTT broker: what they said of their
// presence, and maybe more.
type Retaining interface {
	Dialect
	// LastWill returns what the last will of a unit says, whose presence is retained as p.
	LastWill(p Presence) []byte
	// Retained returns the filter that matches all that is retained of a unit, its presence
	// included.
	Retained(Unit) string
}
