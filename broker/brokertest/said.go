package brokertest

import (
	"motorpool/telematics"
	v1 "motorpool/telematics/v1"
)

// Said returns what a unit of protocol v1 said, as it comes from the MQTT broker.
func Said(unit telematics.Unit, payload []byte, retained bool) telematics.Message {
	return telematics.Message{Dialect: v1.Dialect{}, Unit: unit, Payload: payload, Retained: retained}
}
