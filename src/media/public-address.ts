import { type LookupAddress, lookup } from "node:dns";
import { BlockList, isIP, type LookupFunction } from "node:net";

/** Addresses outside the public network, from the IANA special-purpose registries. */
const PRIVATE = new BlockList();
for (const [network, prefix] of [
  ["0.0.0.0", 8],
  ["10.0.0.0", 8],
  ["100.64.0.0", 10],
  ["127.0.0.0", 8],
  ["169.254.0.0", 16],
  ["172.16.0.0", 12],
  ["192.0.0.0", 24],
  ["192.0.2.0", 24],
  ["192.88.99.0", 24],
  ["192.168.0.0", 16],
  ["198.18.0.0", 15],
  ["198.51.100.0", 24],
  ["203.0.113.0", 24],
  ["224.0.0.0", 3],
] as const) {
  PRIVATE.addSubnet(network, prefix, "ipv4");
}
/** The public part of IPv6. Translated and tunnelled addresses within it count as private, to be safe. */
const PUBLIC_V6 = new BlockList();
PUBLIC_V6.addSubnet("2000::", 3, "ipv6");
for (const [network, prefix] of [
  ["2001::", 23],
  ["2001:db8::", 32],
  ["2002::", 16],
  ["3fff::", 20],
] as const) {
  PRIVATE.addSubnet(network, prefix, "ipv6");
}

/** True for an IP address on the public network, without brackets. False for any other text. */
export function isPublicAddress(address: string): boolean {
  if (isIP(address) === 4) return !PRIVATE.check(address, "ipv4");
  return PUBLIC_V6.check(address, "ipv6") && !PRIVATE.check(address, "ipv6");
}

export type Resolve = (hostname: string, answer: (error: Error | null, addresses: LookupAddress[]) => void) => void;

/**
 * Makes a `lookup` for `connect` that fails with the error of `refuse` if any address of the host is not public. The
 * connection uses the addresses that were checked, so it is harmless if the host later resolves to others.
 */
export function createPublicLookup(refuse: () => Error, resolve: Resolve = resolveAll): LookupFunction {
  return (hostname, { all }, callback) => {
    resolve(hostname, (error, addresses) => {
      const [first] = addresses;
      if (error !== null) callback(error, []);
      else if (first === undefined || !addresses.every(({ address }) => isPublicAddress(address)))
        callback(refuse(), []);
      else if (all === true) callback(null, addresses);
      else callback(null, first.address, first.family);
    });
  };
}

const resolveAll: Resolve = (hostname, answer) => {
  lookup(hostname, { all: true }, (error, addresses) => answer(error, error === null ? addresses : []));
};
