import { z } from "zod";
import { editDistance } from "../text/edit-distance.ts";
import { defineTool, type Tool, type ToolDeps, ToolError } from "./tool.ts";

const FORMATS = ["iso", "date", "time", "weekday", "unix"] as const;
type Format = (typeof FORMATS)[number];

const MAX_NEAR_ZONES = 5;

/** Current names of cities. Node's list of zones has only the outdated names, but Node also accepts these. */
const RENAMED_ZONES = [
  "America/Nuuk",
  "Asia/Ho_Chi_Minh",
  "Asia/Kathmandu",
  "Asia/Kolkata",
  "Asia/Yangon",
  "Europe/Kyiv",
  "UTC",
];

const schema = z.object({
  zone: z.string().max(64).default("UTC").describe('IANA time zone, for example "Asia/Tokyo"'),
  format: z
    .enum(FORMATS)
    .default("iso")
    .describe("iso: date, time and offset; date; time; weekday; unix: seconds since 1970"),
});

export function createCurrentTime({ now }: ToolDeps): Tool {
  return defineTool({
    name: "current_time",
    description:
      "Returns the current date and time. Use it whenever an answer depends on today's date or the time in some place.",
    schema,
    timeoutMs: 1_000,
    run: async ({ zone, format }) => formatTime(now(), zone, format),
    describeCall: ({ zone }) => `looking up the time in ${toPlace(zone)}`,
  });
}

function formatTime(now: number, zone: string, format: Format): string {
  const { name, date, time, offset, weekday } = readZone(now, zone);
  switch (format) {
    case "iso":
      return `${date}T${time}${offset} (${name})`;
    case "date":
      return `${date} (${name})`;
    case "time":
      return `${time} (${name})`;
    case "weekday":
      return `${weekday} (${name})`;
    case "unix":
      return String(Math.floor(now / 1_000));
  }
  return format satisfies never;
}

/** Uses `Intl`, because the oldest supported Node has no `Temporal`. */
function readZone(now: number, zone: string) {
  const parts = Object.fromEntries(
    createFormat(zone)
      .formatToParts(now)
      .map(({ type, value }) => [type, value]),
  );
  return {
    name: findName(zone.trim()),
    date: `${parts["year"]}-${parts["month"]}-${parts["day"]}`,
    time: `${parts["hour"]}:${parts["minute"]}:${parts["second"]}`,
    // "GMT" for UTC, otherwise for example "GMT+02:00".
    offset: parts["timeZoneName"]?.slice("GMT".length) || "+00:00",
    weekday: parts["weekday"],
  };
}

function createFormat(zone: string): Intl.DateTimeFormat {
  try {
    return new Intl.DateTimeFormat("en", {
      timeZone: zone.trim(),
      hourCycle: "h23",
      year: "numeric",
      month: "2-digit",
      day: "2-digit",
      hour: "2-digit",
      minute: "2-digit",
      second: "2-digit",
      weekday: "long",
      timeZoneName: "longOffset",
    });
  } catch {
    const near = findNearZones(zone);
    const hint = near.length === 0 ? 'Use an IANA name such as "Europe/Berlin"' : `Similar names: ${near.join(", ")}`;
    throw new ToolError(
      `There is no time zone ${JSON.stringify(zone)}. ${hint}. Call the tool again with one of the right names.`,
    );
  }
}

/** Returns a zone's current name in its usual spelling. `Intl` ignores case, but returns outdated names. */
function findName(zone: string): string {
  const isSame = (name: string) => name.toLowerCase() === zone.toLowerCase();
  return [...RENAMED_ZONES, ...Intl.supportedValuesOf("timeZone")].find(isSame) ?? zone;
}

/** Returns the zones whose city is in the text, possibly with a typo. */
function findNearZones(zone: string): string[] {
  const asked = toWords(zone);
  const place = toWords(zone.split("/").at(-1) ?? "");
  const zones = [...Intl.supportedValuesOf("timeZone"), ...RENAMED_ZONES];
  return zones
    .map((candidate) => {
      const name = toWords(candidate.split("/").at(-1) ?? "");
      const isNamed = name.length > 2 && ` ${asked} `.includes(` ${name} `);
      return { candidate, distance: isNamed ? 0 : editDistance(place, name), slips: Math.floor(name.length / 3) };
    })
    .filter(({ distance, slips }) => distance <= slips)
    .sort((a, b) => a.distance - b.distance)
    .slice(0, MAX_NEAR_ZONES)
    .map(({ candidate }) => candidate);
}

function toWords(text: string): string {
  return text
    .toLowerCase()
    .split(/[^\p{L}\p{N}]+/u)
    .filter(Boolean)
    .join(" ");
}

function toPlace(zone: string): string {
  return (zone.split("/").at(-1) ?? zone).replaceAll("_", " ");
}
