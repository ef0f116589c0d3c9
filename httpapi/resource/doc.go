// Package resource has the resources of the API as JSON, for the bodies of responses and the data
// of events. openapi.yaml is their contract; package httpapi adds the envelope.
//
// Every member is always present, and null where its value is not known. Functions are pure, and
// safe for concurrent use.
package resource
