package ovms

import (
	"time"

	"motorpool/telematics"
)

// Watch implements telematics.Watchable: while at least one client is active, a module sends
// changed metrics every 10 s (ovms_server_v3.cpp: IncomingMsg, AddClient, RemoveClient, Ticker1).
func (Dialect) Watch(u telematics.Unit, watcher string, on bool) telematics.Transmission {
	payload := "0"
	if on {
		payload = "1"
	}
	return telematics.Transmission{Unit: u, Topic: topic(u, "client/"+watcher+"/active"), Payload: []byte(payload)}
}

// WatchedFor implements telematics.Watchable (AddClient).
func (Dialect) WatchedFor() time.Duration { return 120 * time.Second }
