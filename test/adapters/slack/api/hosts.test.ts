import { describe, expect, test } from "vitest";
import { createSlackHosts } from "../../../../adapters/slack/api/hosts.ts";

describe("Slack's hosts", () => {
  test("are its own where nothing else is said", () => {
    const { isHook, isUpload, origins } = createSlackHosts(undefined);
    expect(origins).toEqual([]);
    expect(isHook("https://hooks.slack.com/commands/T1/2/x")).toBe(true);
    expect(isUpload("https://files.slack.com/upload/v1/x")).toBe(true);
    expect(isUpload("https://slack-files.com.example/x")).toBe(false);
    for (const address of [
      "https://hooks.slack-gov.com/x",
      "http://hooks.slack.com/x",
      "https://evil.example",
      "no address",
    ]) {
      expect(isHook(address)).toBe(false);
    }
    for (const address of [
      "http://files.slack.com/x",
      "https://evilslack.com/x",
      "https://files.slack-gov.com/x",
      "no address",
    ]) {
      expect(isUpload(address)).toBe(false);
    }
  });

  test.each(["https://slack-gov.com/api/", "https://www.slack-gov.com/api/"])("of GovSlack follow %s", (apiUrl) => {
    const { isHook, isUpload, files } = createSlackHosts(apiUrl);
    expect(isHook("https://hooks.slack-gov.com/commands/T1/2/x")).toBe(true);
    expect(isUpload("https://files.slack-gov.com/upload/v1/x")).toBe(true);
    expect(files).toContain("*.slack-gov.com");
    expect(isHook("https://hooks.slack-gov.com.example/x")).toBe(false);
  });

  test("are the origin itself where something at an address of its own stands in for Slack", () => {
    const { isHook, isUpload, files, origins } = createSlackHosts("http://127.0.0.1:8080/api/");
    expect(origins).toEqual(["http://127.0.0.1:8080"]);
    expect(isHook("http://127.0.0.1:8080/response/x")).toBe(true);
    expect(isUpload("http://127.0.0.1:8080/upload/x")).toBe(true);
    expect(isHook("http://127.0.0.1:9090/response/x")).toBe(false);
    expect(files.join()).not.toContain("127");
  });
});
