package telematics

// Retaining is a Dialect whose units have messages retained by the MQTT broker: their presence, and
// maybe more.
type Retaining interface {
	Dialect
	// LastWill returns the payload of the last will of a unit whose retained presence is p.
	LastWill(p Presence) []byte
	// Retained returns the filters that match all that a unit may publish, and so retain, including
	// its presence.
	Retained(Unit) []string
}
