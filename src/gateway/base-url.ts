import { GatewayError } from "./errors.ts";

/**
 * The address that the interface's paths are appended to. Servers are documented with and without a slash
 * or a version at the end; both are taken off. Throws a `rejected` GatewayError when it is no such address.
 */
export function readBaseUrl(text: string): string {
  const url = URL.parse(text.trim());
  if (url === null || (url.protocol !== "http:" && url.protocol !== "https:")) {
    throw new GatewayError("rejected", "The gateway's base address must be an http:// or https:// URL.");
  }
  if (url.username !== "" || url.password !== "" || url.search !== "" || url.hash !== "") {
    throw new GatewayError(
      "rejected",
      "The gateway's base address must have no user, password, query or fragment; the key is set on its own.",
    );
  }
  const path = url.pathname.replace(/\/+$/, "").replace(/\/v1(?:beta)?$/, "");
  return `${url.origin}${path.replace(/\/+$/, "")}`;
}
