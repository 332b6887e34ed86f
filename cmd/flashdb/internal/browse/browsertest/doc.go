// Package browsertest tries the page of `flashdb browse` in a headless Chromium. It is a module of
// its own, so that what drives the browser is no dependency of flashdb. Its tests are skipped where
// there is no browser.
package browsertest
