// Package resource has the resources of the API as JSON: what the bodies of answers and the data of
// events contain. openapi.yaml is their contract; package httpapi puts the envelope around them.
//
// Every member is always present, and null where its value is not known. Functions are pure, and
// safe for concurrent use.
package resource
