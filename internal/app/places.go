package app

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"golang.org/x/sync/errgroup"

	"motorpool/guard"
	"motorpool/telematics/places"
	"motorpool/telematics/places/nominatim"
)

// publicGeocoder is OpenStreetMap's server. Its policy requires that clients identify themselves
// (https://operations.osmfoundation.org/policies/nominatim/).
const publicGeocoder = "nominatim.openstreetmap.org"

func (c Config) checkGeocoder() error {
	if c.GeocoderURL == "" {
		if c.GeocoderContact != "" {
			return errors.New("--geocoder-contact: of no use without --geocoder-url")
		}
		return nil
	}
	if err := serverURL("geocoder-url", string(c.GeocoderURL), "https", "http"); err != nil {
		return err
	}
	if _, err := c.geocoder(); err != nil {
		return fmt.Errorf("--geocoder-url, --geocoder-contact: %w", err)
	}
	if u, err := url.Parse(string(c.GeocoderURL)); err == nil && strings.EqualFold(u.Hostname(), publicGeocoder) &&
		c.GeocoderContact == "" {
		return errors.New("--geocoder-contact: " + publicGeocoder + " wants to know whom to write to: an e-mail address or a URL of yours")
	}
	return nil
}

func (c Config) geocoder() (*nominatim.Client, error) {
	return nominatim.New(nominatim.Config{URL: string(c.GeocoderURL), Contact: c.GeocoderContact, Version: c.Version})
}

// addresses keeps the addresses of positions. Without a geocoder no request is sent.
type addresses struct {
	*places.Book
	panics   *guard.Guard
	geocoder *nominatim.Client // nil: none
}

func (s *service) newAddresses(limiter places.Limiter) (*addresses, error) {
	a := &addresses{panics: s.panics}
	config := places.Config{Stations: s.cars, Limiter: limiter, Log: s.log, Metrics: s.registry}
	if s.config.GeocoderURL != "" {
		var err error
		if a.geocoder, err = s.config.geocoder(); err != nil {
			return nil, err
		}
		config.Geocoder = a.geocoder
	}
	a.Book = places.New(config)
	return a, nil
}

// run keeps addresses up to date until the context ends.
func (a *addresses) run(ctx context.Context) error {
	var parts errgroup.Group
	parts.Go(func() error { return a.panics.Keep(ctx, "read stations", a.ReadStations) })
	if a.geocoder != nil {
		defer a.geocoder.Close()
		parts.Go(func() error { return a.panics.Keep(ctx, "query geocoder", a.QueryGeocoder) })
	}
	return parts.Wait()
}
