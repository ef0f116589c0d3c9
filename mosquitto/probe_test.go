package mosquitto_test

// spoilsTheProbe attacks the message that an instance sends to itself through a shared group, to
// verify that the broker delivers there.
func spoilsTheProbe(w world) {
	const unused = "probe-3F9K2M7Q"
	attacker, service := w.unit(w.attacker).mustDial(w.t), w.service().mustDial(w.t)
	probe := topic(unused, "presence")
	attacker.subscribe(probe, "$share/g/"+probe, shared("g", "presence"), topic(w.attacker, "command"))
	service.subscribe("$share/"+unused+"/"+probe, all("ack"))

	attacker.publish(probe, "forged")
	attacker.publish(topic(w.attacker, "ack"), "tried")
	service.await("tried")
	service.publish(probe, "")
	service.await("")
	service.publish(topic(w.attacker, "command"), "for the attacker")

	service.onlyReceived("tried", "")
	attacker.await("for the attacker")
	attacker.onlyReceived("for the attacker")
}
