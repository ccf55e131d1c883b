import { isIP } from "node:net";

const COMMERCIAL = "slack.com";

/** Slack's own hosts. No file, answer or token is sent to any other address, even if Slack names it. */
export interface SlackHosts {
  /** The origin of `SLACK_API_URL`, over http too: a stand-in for Slack. */
  origins: readonly string[];
  /** Hosts that files come from and go to: a name, or `*.` and a name for everything below it. */
  files: readonly string[];
  /** True for an address at which a command or a button may be answered. */
  isHook(address: string): boolean;
  /** True for an address to which the bytes of a file may be sent. */
  isUpload(address: string): boolean;
}

/**
 * Slack's hosts, and those below the host of the Web API: GovSlack, whose API is at slack-gov.com, has its hooks and
 * files there too. https://api.slack-gov.com/gov-slack/about
 */
export function createSlackHosts(apiUrl: string | undefined): SlackHosts {
  const api = apiUrl === undefined ? undefined : new URL(apiUrl);
  const origins = api === undefined ? [] : [api.origin];
  const name = api?.hostname.replace(/^www\./, "") ?? COMMERCIAL;
  const isName = isIP(name.replace(/^\[|\]$/g, "")) === 0 && name.includes(".");
  const domains = [...new Set([COMMERCIAL, ...(isName ? [name] : [])])];
  const files = [...domains, "slack-files.com"].map((domain) => `*.${domain}`);

  return {
    origins,
    files,
    isHook(address) {
      const url = URL.parse(address);
      if (url === null) return false;
      return origins.includes(url.origin) || domains.some((domain) => url.origin === `https://hooks.${domain}`);
    },
    isUpload(address) {
      const url = URL.parse(address);
      if (url === null) return false;
      const isBelow = files.some((host) => `.${url.hostname}`.endsWith(host.slice(1)));
      return origins.includes(url.origin) || (url.protocol === "https:" && isBelow);
    },
  };
}
