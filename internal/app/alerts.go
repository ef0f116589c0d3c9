package app

import (
	"context"
	"fmt"
	"net/url"

	"motorpool/alerts/alertmanager"
	"motorpool/store/alerts"
	"motorpool/store/twins"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// newAlerts returns the store that opens and clears alerts.
func (s *service) newAlerts() *alerts.Store {
	return alerts.New(alerts.Config{
		DB: s.postgres, Areas: s.places, Publish: func(e telematics.Event) { s.broker.Publish(e) },
		Receiving: func() bool { return s.mqtt.AllReady() == nil },
		TryLease:  s.lease("alerts", alerts.LeaseFor), Logger: s.log, Metrics: s.registry, Guard: s.panics,
	})
}

// alarmingTwins have alarms of units become alerts.
type alarmingTwins struct {
	*twins.Twins
	alerts *alerts.Store
}

// Observe implements ingest.Twins.
func (t alarmingTwins) Observe(ctx context.Context, observations []delivery.Observation) (delivery.Seen, error) {
	seen, err := t.Twins.Observe(ctx, observations)
	t.alerts.Alarmed(seen.Changes)
	return seen, err
}

// Run implements ingest.Twins. It writes the last alarms itself: it ends after the last report, and
// so maybe after the alerts.
func (t alarmingTwins) Run(ctx context.Context, publish func([]telematics.Change)) error {
	defer t.alerts.WriteAlarms(context.WithoutCancel(ctx))
	return t.Twins.Run(ctx, func(changes []telematics.Change) {
		t.alerts.Alarmed(changes)
		publish(changes)
	})
}

// alertmanagers returns the Alertmanagers of the settings.
func (c Config) alertmanagers() ([]*url.URL, error) {
	if c.AlertmanagerURL == "" {
		return nil, nil
	}
	urls, err := alertmanager.ParseURLs(string(c.AlertmanagerURL))
	if err != nil {
		return nil, fmt.Errorf("--alertmanager-url: %w", err)
	}
	return urls, nil
}

// newAlertSender returns what sends open alerts to the Alertmanagers of the settings; nil: there
// are none.
func (s *service) newAlertSender() (*alertmanager.Sender, error) {
	urls, err := s.config.alertmanagers()
	if len(urls) == 0 {
		return nil, err
	}
	return alertmanager.New(alertmanager.Config{
		URLs: urls, Open: s.alerts.Open, Console: s.config.ConsoleURL, Logger: s.log, Metrics: s.registry, Guard: s.panics,
	}), nil
}
