/** Answers each message with this process's processor time in seconds. The process exits with its parent. */
export function reportCpu(): void {
  process.on("message", () => {
    const { user, system } = process.cpuUsage();
    process.send?.((user + system) / 1e6);
  });
  process.once("disconnect", () => process.exit());
}
